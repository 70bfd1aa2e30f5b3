"""Update policies of existing resources, which are adopted or released, never changed."""

from holdfast.updates.policies.cluster import (
    CREATE_ONLY,
    LIFECYCLE_UPDATE,
    NAME_IS_TAKEN,
    REPLACE_NODES,
    UPDATE_CLUSTER,
)
from holdfast.updates.policies.effects import Case, Edit, Effect, Policy, appears

LUSTRE, HOME = "storage.lustre.existing", "storage.home.existing"
GROUP = "cluster.instance_groups[]"
NODES_MOUNT = "SageMaker guide, sagemaker-hyperpod-ref: file systems are mounted when a node is made"
ROLE_OF_NODES = "running nodes keep the role that they were made with (assumed, undocumented)"


def _was_made_here(edit: Edit) -> bool:
    return appears(edit)


def _scripts(place: str) -> tuple[str, ...]:
    return (place, *(f"{place}.{leaf}" for leaf in ("source_s3_uri", "on_create", "on_init_complete")))


EXISTING = (
    Policy(
        settings=(LUSTRE, HOME),
        effect=Effect.NEW_NODES,
        reason="nodes made from now on mount the other file system",
        action=REPLACE_NODES,
        source=NODES_MOUNT,
        cases=(
            Case(
                when="one that was made here is given up",
                holds=_was_made_here,
                effect=Effect.REPLACES_FILE_SYSTEM,
                reason="the stack no longer has the file system; with storage.on_delete: Delete its data is gone",
                action="copy the data first",
            ),
        ),
    ),
    Policy(
        settings=(
            f"{LUSTRE}.file_system_id",
            f"{LUSTRE}.mount_name",
            f"{LUSTRE}.dns_name",
            f"{HOME}.file_system_id",
            f"{HOME}.dns_name",
        ),
        effect=Effect.NEW_NODES,
        reason="nodes made from now on mount the other file system; its data repository associations are created again",
        action=REPLACE_NODES,
        source=NODES_MOUNT,
    ),
    Policy(
        settings=("storage.data", "storage.data.bucket_name"),
        effect=Effect.REPLACES_RESOURCE,
        reason="datasets are in the other bucket; objects are not carried over",
        action="copy the objects first",
        source="CloudFormation registry, AWS::FSx::DataRepositoryAssociation createOnlyProperties",
        cases=(
            Case(
                when="the bucket that was made here is given up",
                holds=_was_made_here,
                effect=Effect.REPLACES_FILE_SYSTEM,
                reason="the stack no longer has the bucket; with storage.on_delete: Delete its objects are gone",
                action="copy the objects first",
            ),
        ),
    ),
    Policy(
        settings=("storage.data.kms_key_arn", "lifecycle.bucket.kms_key_arn"),
        effect=Effect.IN_PLACE,
        reason="the policy of the nodes' role is changed",
        source="IAM API, PutRolePolicy",
    ),
    Policy(
        settings=("storage.data.manage_bucket_policy", "lifecycle.bucket.manage_bucket_policy"),
        effect=Effect.IN_PLACE,
        reason="this stack's policy takes the place of the one that the bucket has, or is removed without another",
        action="write down the policy that is there first",
        source="S3 API, PutBucketPolicy",
    ),
    Policy(
        settings=(
            "lifecycle.bucket",
            "lifecycle.bucket.bucket_name",
            "lifecycle.bucket.prefix",
            *_scripts("lifecycle.existing"),
            *_scripts(f"{GROUP}.life_cycle_config"),
        ),
        effect=Effect.NEW_NODES,
        reason="lifecycle scripts run when a node is made; nodes made from now on get them from the other place",
        action=REPLACE_NODES,
        source=LIFECYCLE_UPDATE,
    ),
    Policy(
        settings=(
            "cluster.execution_role_arn",
            f"{GROUP}.execution_role_arn",
            "cluster.restricted_instance_groups[].execution_role_arn",
        ),
        effect=Effect.NEW_NODES,
        reason=ROLE_OF_NODES,
        action=f"keep the old role until no node has it; {REPLACE_NODES}",
        source=UPDATE_CLUSTER,
    ),
    Policy(
        settings=("cluster.cluster_role_arn",),
        effect=Effect.IN_PLACE,
        reason="Karpenter works with the other role from now on",
        source=f"{UPDATE_CLUSTER}, ClusterRole",
    ),
    Policy(
        settings=("eks.existing", "eks.existing.cluster"),
        effect=Effect.REPLACES_CLUSTER,
        reason="a HyperPod cluster cannot go over to another EKS cluster: another one is made and this one deleted",
        action="wait until no job runs",
        source=CREATE_ONLY,
        cases=(NAME_IS_TAKEN,),
    ),
    Policy(
        settings=("eks.existing.install_charts",),
        effect=Effect.IN_PLACE,
        reason="charts and add-ons are installed by this stack, or uninstalled",
        action="before it is removed, have another owner install them",
        source="EKS API, CreateAddon and DeleteAddon; Helm",
        cases=(
            Case(
                when="they are given up",
                holds=lambda edit: not edit.new,
                effect=Effect.NEW_NODES,
                reason="without HyperPod's charts and add-ons new nodes do not become ready",
                action="have another owner install them at once",
            ),
        ),
    ),
    Policy(
        settings=("network.existing.additional_subnet_ids", "network.existing.additional_security_group_ids"),
        effect=Effect.REPLACES_CLUSTER,
        reason="subnets and security groups of a cluster cannot be changed: another cluster is made",
        action="wait until no job runs; or give groups an override_vpc when they are made",
        source=CREATE_ONLY,
        cases=(NAME_IS_TAKEN,),
    ),
    Policy(
        settings=("permissions_boundary",),
        effect=Effect.IN_PLACE,
        reason="what every role made here may do at most changes at once",
        source="IAM API, PutRolePermissionsBoundary",
    ),
    Policy(
        settings=("images.repositories",),
        effect=Effect.IN_PLACE,
        reason="nodes may pull from them, or not any more",
        source="IAM, the policy of the nodes' role is changed",
    ),
)
