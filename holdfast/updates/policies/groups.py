from collections.abc import Callable
from typing import Any

from holdfast.updates.policies.cluster import NEW_CLUSTER, REPLACE_NODES, SLURM_MIGRATION, UPDATE_CLUSTER
from holdfast.updates.policies.effects import Case, Edit, Effect, Policy, appears, shrinks, vanishes

GROUP = "cluster.instance_groups[]"
RESTRICTED = "cluster.restricted_instance_groups[]"
GROUP_API = "SageMaker API, ClusterInstanceGroupSpecification"
SLURM_REFERENCE = "SageMaker guide, sagemaker-hyperpod-ref: configuration of Slurm by API"
SCALE_DOWN = "SageMaker guide, smcluster-scale-down"
SPOT = "SageMaker guide, sagemaker-hyperpod-spot"
PREREQUISITES = "SageMaker guide, sagemaker-hyperpod-prerequisites"
RESTRICTED_API = "SageMaker API, RestrictedInstanceGroupsConfig"
NEW_GROUP = "add a group of another name, deploy, move the work, then remove this one"
FLEXIBLE = "a group of one instance type cannot become one of several, nor the other way round"


def _total(group: Any) -> int:
    return int(group["instance_count"]) + int(group["spare_count"])


def _is_controller(group: Any) -> bool:
    return bool(group and group.get("slurm") and group["slurm"]["node_type"] == "Controller")


def _of_controller(edit: Edit) -> bool:
    pairs = ((edit.deployed, edit.before), (edit.desired, edit.after))
    return any(
        _is_controller(group)
        for environment, section in pairs
        for group in environment["cluster"]["instance_groups"]
        if section is group or any(section is part for part in group.values())
    )


def _other_controller(reason: str, *, where: Callable[[Edit], bool] = lambda _: True) -> Case:
    """A cluster has one Controller group at any time, so none can be added before the old one is removed."""
    return Case(
        when="the group is the Controller group, or becomes one",
        holds=lambda edit: where(edit) and _of_controller(edit),
        effect=Effect.REFUSED,
        reason=f"{reason}, and a cluster has exactly one Controller group at any time",
        action=f"another controller needs another cluster: {NEW_CLUSTER}",
    )


def _deployment(place: str) -> tuple[str, ...]:
    sizes = ("maximum_batch_size", "rollback_maximum_batch_size")
    leaves = (f"{place}.{size}.{leaf}" for size in sizes for leaf in ("type", "value"))
    return (place, *leaves, f"{place}.{sizes[1]}", f"{place}.wait_interval_s", f"{place}.rollback_alarms")


GROUPS = (
    Policy(
        settings=(GROUP, RESTRICTED),
        effect=Effect.IN_PLACE,
        reason="a group of new nodes is made beside the others",
        source=f"{UPDATE_CLUSTER}; {SCALE_DOWN}",
        cases=(
            Case(
                when="the Controller group is removed or renamed",
                holds=lambda edit: vanishes(edit) and _is_controller(edit.old),
                effect=Effect.REFUSED,
                reason="a cluster has exactly one Controller group at any time and its nodes cannot be deleted",
                action=f"keep the group and its name; another controller needs another cluster: {NEW_CLUSTER}",
            ),
            Case(
                when="a Controller group is added",
                holds=lambda edit: appears(edit) and _is_controller(edit.new),
                effect=Effect.REFUSED,
                reason="a cluster has exactly one Controller group at any time",
                action="keep the Controller group that is there",
            ),
            Case(
                when="a group is removed or renamed",
                holds=vanishes,
                effect=Effect.REPLACES_GROUP,
                reason="groups are known by their names: one that is not named any more is deleted with its nodes",
                action="drain its nodes, copy what their volumes hold, then allow it",
            ),
        ),
    ),
    Policy(
        settings=(f"{GROUP}.name", f"{RESTRICTED}.name"),
        effect=Effect.REPLACES_GROUP,
        reason="a renamed group is a group deleted and another one made",
        action="add the new group first, move the work, then remove the old one",
        source=UPDATE_CLUSTER,
        cases=(_other_controller("a renamed group is a group deleted and another one made"),),
    ),
    Policy(
        settings=(f"{GROUP}.instance_type", f"{RESTRICTED}.instance_type"),
        effect=Effect.REFUSED,
        reason="the instance type of a group cannot be changed",
        action=NEW_GROUP,
        source="SageMaker guide, update-cluster: an existing group keeps its instance type",
        cases=(_other_controller("the instance type of a group cannot be changed"),),
    ),
    Policy(
        settings=(f"{GROUP}.instance_types",),
        effect=Effect.NEW_NODES,
        reason="nodes that are added are of the new types",
        action=REPLACE_NODES,
        source="SageMaker API, ClusterInstanceRequirementDetails: current and desired types",
        cases=(
            _other_controller(FLEXIBLE, where=lambda edit: appears(edit) or vanishes(edit)),
            Case(
                when="a group becomes flexible, or stops being so",
                holds=lambda edit: appears(edit) or vanishes(edit),
                effect=Effect.REFUSED,
                reason=FLEXIBLE,
                action=NEW_GROUP,
            ),
        ),
    ),
    Policy(
        settings=(f"{GROUP}.instance_count", f"{GROUP}.spare_count", f"{RESTRICTED}.instance_count"),
        effect=Effect.IN_PLACE,
        reason="nodes are added",
        source=f"{UPDATE_CLUSTER}; {SCALE_DOWN}",
        cases=(
            Case(
                when="nodes and spares add up to the same",
                holds=lambda edit: "spare_count" in edit.after and _total(edit.before) == _total(edit.after),
                effect=Effect.NOTHING,
                reason="the group's InstanceCount is their sum and stays as it is",
            ),
            Case(
                when="fewer nodes",
                holds=lambda edit: (
                    _total(edit.after) < _total(edit.before) if "spare_count" in edit.after else shrinks(edit)
                ),
                effect=Effect.DELETES_NODES,
                reason="HyperPod chooses which nodes go, with their volumes and what runs on them",
                action="drain nodes first, and delete those with BatchDeleteClusterNodes when it matters which",
            ),
        ),
    ),
    Policy(
        settings=(f"{GROUP}.min_instance_count",),
        effect=Effect.IN_PLACE,
        reason="it decides only when a group that grows is in service",
        source=GROUP_API,
    ),
    Policy(
        settings=(f"{GROUP}.threads_per_core", f"{RESTRICTED}.threads_per_core"),
        effect=Effect.NEW_NODES,
        reason="hyper-threading is set when an instance is launched",
        action=REPLACE_NODES,
        source="EC2 guide, CPU options are set at launch",
    ),
    Policy(
        settings=(f"{GROUP}.capacity",),
        effect=Effect.REFUSED,
        reason="the kind of capacity of a group cannot be changed",
        action=NEW_GROUP,
        source=SPOT,
        cases=(_other_controller("the kind of capacity of a group cannot be changed"),),
    ),
    Policy(
        settings=(f"{GROUP}.training_plan_arn", f"{RESTRICTED}.training_plan_arn"),
        effect=Effect.NEW_NODES,
        reason="running nodes keep the capacity that they were launched with",
        action=REPLACE_NODES,
        source=GROUP_API,
    ),
    Policy(
        settings=(
            *(f"{GROUP}.{name}" for name in ("volume_gib", "volume_kms_key", "root_volume_kms_key", "mount_lustre")),
            f"{RESTRICTED}.volume_gib",
        ),
        effect=Effect.NEW_NODES,
        reason="storage is attached and mounted when a node is made",
        action=REPLACE_NODES,
        source=f"{SLURM_REFERENCE}; {SLURM_MIGRATION}",
    ),
    Policy(
        settings=(f"{GROUP}.deep_health_checks", f"{RESTRICTED}.deep_health_checks"),
        effect=Effect.NEW_NODES,
        reason="nodes are checked before they are taken into service, not later",
        action="to check running nodes, call StartClusterHealthCheck",
        source="SageMaker API, OnStartDeepHealthChecks",
    ),
    Policy(
        settings=(f"{GROUP}.image_id", f"{GROUP}.image_release_version"),
        effect=Effect.ROLLING,
        reason="nodes get another AMI: their root volumes are replaced and lifecycle scripts run again",
        action="copy what root volumes hold; nodes are updated all at once unless a deployment configuration limits it",
        source="SageMaker API, UpdateClusterSoftware, which CloudFormation calls for it",
    ),
    Policy(
        settings=(f"{GROUP}.network_interface",),
        effect=Effect.NEW_NODES,
        reason="network interfaces are made with the instance",
        action=REPLACE_NODES,
        source=GROUP_API,
    ),
    Policy(
        settings=(
            *(
                f"{group}.override_vpc{leaf}"
                for group in (GROUP, RESTRICTED)
                for leaf in ("", ".subnet_ids", ".security_group_ids")
            ),
            f"{GROUP}.availability_zone",
        ),
        effect=Effect.REFUSED,
        reason="subnets and security groups of a group are set when it is made",
        action=NEW_GROUP,
        source=PREREQUISITES,
        cases=(_other_controller("subnets and security groups of a group are set when it is made"),),
    ),
    Policy(
        settings=(
            f"{GROUP}.scheduled_update",
            f"{GROUP}.scheduled_update.schedule_expression",
            *_deployment(f"{GROUP}.scheduled_update.deployment"),
            f"{GROUP}.auto_patch",
            f"{GROUP}.auto_patch.strategy",
        ),
        effect=Effect.IN_PLACE,
        reason="the next update of software goes by it",
        source="SageMaker API, ScheduledUpdateConfig and AutoPatchConfig",
    ),
    Policy(
        settings=(f"{GROUP}.labels", f"{GROUP}.taints"),
        effect=Effect.IN_PLACE,
        reason="HyperPod brings the nodes to the declared labels and taints; NoExecute evicts pods",
        source="SageMaker API, ClusterKubernetesConfig",
    ),
    Policy(
        settings=(f"{GROUP}.slurm", f"{GROUP}.slurm.node_type"),
        effect=Effect.REFUSED,
        reason="what Slurm makes of a group cannot be changed",
        action=NEW_GROUP,
        source=SLURM_REFERENCE,
        cases=(_other_controller("what Slurm makes of a group cannot be changed"),),
    ),
    Policy(
        settings=(f"{GROUP}.slurm.partition",),
        effect=Effect.IN_PLACE,
        reason="slurm.conf is rewritten; pending jobs of the old partition stay in it",
        action="let the old partition's queue run empty, and change the partition named in job files",
        source=SLURM_MIGRATION,
    ),
    Policy(
        settings=(
            f"{RESTRICTED}.lustre",
            f"{RESTRICTED}.lustre.throughput_mbps_per_tib",
            "cluster.restricted_environment",
            "cluster.restricted_environment.lustre",
            "cluster.restricted_environment.lustre.throughput_mbps_per_tib",
            "cluster.restricted_environment.lustre_deletion_policy",
        ),
        effect=Effect.IN_PLACE,
        reason="the service makes or changes the file system that it owns",
        source=RESTRICTED_API,
        cases=(
            Case(
                when="a file system is given up",
                holds=lambda edit: isinstance(edit.old, dict) and vanishes(edit),
                effect=Effect.REPLACES_FILE_SYSTEM,
                reason="the service deletes the file system, or keeps it, by lustre_deletion_policy",
                action="export what it holds, then allow it",
            ),
        ),
    ),
    Policy(
        settings=(f"{RESTRICTED}.lustre.capacity_gib", "cluster.restricted_environment.lustre.capacity_gib"),
        effect=Effect.IN_PLACE,
        reason="the service enlarges the file system that it owns",
        source=f"{RESTRICTED_API}; FSx API, UpdateFileSystem",
        cases=(
            Case(
                when="the capacity falls",
                holds=shrinks,
                effect=Effect.REFUSED,
                reason="a Lustre file system can grow, and never shrink",
                action="leave the capacity as it is",
            ),
        ),
    ),
)
