from typing import Any

from holdfast.updates.policies.effects import Case, Edit, Effect, Policy, vanishes
from holdfast.updates.policies.modes import changes_modes

CREATE_ONLY = "CloudFormation registry, AWS::SageMaker::Cluster createOnlyProperties"
UPDATE_CLUSTER = "SageMaker API, UpdateCluster"
SLURM_MIGRATION = "SageMaker guide, sagemaker-hyperpod-slurm-api-config-migration"
LIFECYCLE_UPDATE = (
    "SageMaker guide, sagemaker-hyperpod-lifecycle-best-practices: UpdateCluster runs scripts on new nodes"
)
CONTINUOUS = "SageMaker API, NodeProvisioningMode has the one value Continuous"

REPLACE_NODES = (
    "to have it everywhere, replace the running nodes a few at a time (BatchReplaceClusterNodes), "
    "or take the group to 0 nodes and back"
)
NEW_CLUSTER = (
    "give cluster.name another name too and allow both in allow_replacement, "
    "or take the environment down and deploy it again"
)


def cluster_name(environment: Any) -> str:
    return str(environment["cluster"]["name"] or environment["name"])


def same_name(edit: Edit) -> bool:
    return cluster_name(edit.deployed) == cluster_name(edit.desired)


NAME_IS_TAKEN = Case(
    when="the cluster keeps its name",
    holds=same_name,
    effect=Effect.REFUSED,
    reason="only a new cluster can have it, and it is made while the old one still has the name",
    action=NEW_CLUSTER,
)


def _unmerged_slurm(edit: Edit) -> bool:
    if edit.new is None or edit.desired["eks"] is not None:
        return False
    return ((edit.deployed["slurm"] or {}).get("config_strategy") or "Managed") != "Merge"


CLUSTER = (
    Policy(
        settings=("cluster.name",),
        effect=Effect.REPLACES_CLUSTER,
        reason="a cluster cannot be renamed: one of the new name is made, then the old one is deleted with its nodes",
        action="wait until no job runs, and have quota and addresses for both clusters at once",
        source=CREATE_ONLY,
        cases=(
            Case(
                when="the new value is the former default",
                holds=same_name,
                effect=Effect.NOTHING,
                reason="the cluster has this name already",
            ),
        ),
    ),
    Policy(
        settings=("cluster.node_recovery",),
        effect=Effect.IN_PLACE,
        reason="HyperPod heeds it from the next fault on",
        source=UPDATE_CLUSTER,
    ),
    Policy(
        settings=("cluster.node_provisioning_mode",),
        effect=Effect.IN_PLACE,
        reason="nodes that run stay; missing ones are asked for until they come",
        source=f"{UPDATE_CLUSTER}; {SLURM_MIGRATION}",
        cases=(
            Case(
                when="it is taken away",
                holds=vanishes,
                effect=Effect.REFUSED,
                reason=f"it cannot be turned off again ({CONTINUOUS})",
                action="leave it at Continuous",
            ),
            Case(
                when="Slurm's strategy was not Merge before",
                holds=_unmerged_slurm,
                effect=Effect.REFUSED,
                reason="with Slurm, only a cluster whose configuration strategy is Merge can go over to Continuous",
                action="deploy slurm.config_strategy: Merge first, then this change without a strategy",
            ),
            Case(
                when="groups go over to custom with it",
                holds=changes_modes,
                effect=Effect.NEW_NODES,
                reason="nodes that run stay; on new ones scripts do all of it (OnCreate), Continuous takes no other",
                action=REPLACE_NODES,
            ),
        ),
    ),
    Policy(
        settings=("cluster.auto_scaler", "cluster.tiered_storage", "cluster.tiered_storage.memory_percentage"),
        effect=Effect.IN_PLACE,
        reason="the service adds or removes what it runs for it in the cluster",
        source=UPDATE_CLUSTER,
    ),
    Policy(
        settings=("cluster.tags",),
        effect=Effect.IN_PLACE,
        reason="tags are added and removed",
        source="SageMaker API, AddTags and DeleteTags",
    ),
)
