from holdfast.catalog import least_metadata_iops
from holdfast.updates.policies.cluster import LIFECYCLE_UPDATE, REPLACE_NODES, SLURM_MIGRATION
from holdfast.updates.policies.effects import Case, Edit, Effect, Policy, grows, shrinks, vanishes
from holdfast.updates.policies.groups import SLURM_REFERENCE
from holdfast.updates.policies.modes import changes_modes, leaves_custom

LUSTRE = "storage.lustre"
DATASET = "storage.lustre.datasets[]"
FILE_SYSTEM = "AWS::FSx::FileSystem"
ASSOCIATION = "AWS::FSx::DataRepositoryAssociation"

UPDATE_FILE_SYSTEM = "FSx API, UpdateFileSystem"
METADATA = "FSx for Lustre guide, managing-metadata-performance; FSx API, UpdateFileSystemLustreMetadataConfiguration"
ASSOCIATIONS = "FSx API, CreateDataRepositoryAssociation: paths do not overlap, and an S3 path has one association"
CREATE_ONLY = f"CloudFormation registry, {ASSOCIATION} createOnlyProperties"

KEPT = "copy the data first; with storage.on_delete: Retain the old file system stays outside the stack, and its cost"


ASSOCIATED = ("file_system_path", "s3_prefix", "s3_uri")
ADD_AGAIN = "remove the dataset and deploy, then add it again; files and objects stay meanwhile"


def _is_shared(edit: Edit) -> bool:
    """The new association would overlap with the old one, which is deleted only after it is made."""
    return any(_overlap(edit.before[key], edit.after[key]) for key in ASSOCIATED)


def _overlap(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return False
    one, other = f"{one.strip('/')}/", f"{other.strip('/')}/"
    return one.startswith(other) or other.startswith(one) or "/" in (one, other)


def _is_renamed(edit: Edit) -> bool:
    """A dataset that is added has the folder or the prefix of one that goes in the same deployment."""
    kept = {item["name"] for item in edit.after["datasets"]}
    gone = [item for item in edit.before["datasets"] if item["name"] not in kept]
    return edit.old is None and any(_overlap(item[key], edit.new[key]) for item in gone for key in ASSOCIATED)


def _is_short_of_iops(edit: Edit) -> bool:
    """The new capacity needs more metadata operations per second than the file system has."""
    has = edit.before.get("metadata_iops")
    return grows(edit) and has is not None and has < least_metadata_iops(edit.new)


def _grows_with_iops(edit: Edit) -> bool:
    before, after = edit.before.get("metadata_iops"), edit.after.get("metadata_iops")
    return grows(edit) and before is not None and after is not None and after > before


OVERLAPS = Case(
    when="the old and the new association overlap",
    holds=_is_shared,
    effect=Effect.REFUSED,
    reason="folders and prefixes have one data repository association, and the old one goes after the new one is made",
    action=ADD_AGAIN,
)
STORAGE = (
    Policy(
        settings=("storage.on_delete",),
        effect=Effect.IN_PLACE,
        reason="it decides what becomes of the data when the stack, or a resource of it, is deleted",
        source="CloudFormation guide, DeletionPolicy and UpdateReplacePolicy",
    ),
    Policy(
        settings=(LUSTRE, "storage.home"),
        effect=Effect.NEW_NODES,
        reason="a file system is made; nodes that run do not mount it",
        action=REPLACE_NODES,
        source=f"{SLURM_REFERENCE}; {SLURM_MIGRATION}",
        cases=(
            Case(
                when="it is taken away",
                holds=vanishes,
                effect=Effect.REPLACES_FILE_SYSTEM,
                reason="the stack no longer has the file system; with storage.on_delete: Delete its data is gone",
                action=KEPT,
            ),
        ),
    ),
    Policy(
        settings=(f"{LUSTRE}.capacity_gib", "storage.home.capacity_gib"),
        effect=Effect.IN_PLACE,
        reason="the file system grows while it is used; the next increase has to wait six hours",
        source=f"{UPDATE_FILE_SYSTEM}; FSx guide, storage capacity; terraform-provider-aws 44432, 44456",
        cases=(
            Case(
                when="the capacity falls",
                holds=shrinks,
                effect=Effect.REFUSED,
                reason="FSx for Lustre and OpenZFS can grow, and never shrink",
                action="leave the capacity as it is, or take the section out and make a new file system",
            ),
            Case(
                when="it needs more metadata_iops than were deployed",
                holds=_is_short_of_iops,
                effect=Effect.REFUSED,
                reason="FSx takes no capacity that needs more metadata operations per second than the file system has",
                action="raise metadata_iops and deploy, then raise the capacity",
            ),
            Case(
                when="metadata_iops rise with it",
                holds=_grows_with_iops,
                effect=Effect.REFUSED,
                reason="FSx takes an increase of both in two requests only, and an update sends one",
                action="raise metadata_iops and deploy, then raise the capacity",
            ),
        ),
    ),
    Policy(
        settings=(f"{LUSTRE}.throughput_mbps_per_tib",),
        effect=Effect.IN_PLACE,
        reason="file servers are exchanged: the file system does not answer for some minutes, and clients wait",
        action="have no job at work on it",
        source=f"{UPDATE_FILE_SYSTEM}; FSx for Lustre guide, managing-throughput-capacity",
        cases=(
            Case(
                when="the file system has EFA",
                holds=lambda edit: bool(edit.before["efa"]),
                effect=Effect.REFUSED,
                reason="the throughput of a file system with EFA is fixed when it is made",
                action="leave it as it is; more capacity brings more throughput",
            ),
        ),
    ),
    Policy(
        settings=(f"{LUSTRE}.mount_path", "storage.home.mount_path"),
        effect=Effect.NEW_NODES,
        reason="running nodes keep the file system where it is, so that nodes would differ",
        action=REPLACE_NODES,
        source=f"{SLURM_REFERENCE}; {SLURM_MIGRATION}",
    ),
    Policy(
        settings=(f"{LUSTRE}.efa",),
        effect=Effect.REFUSED,
        reason="EFA is chosen when the file system is made, and UpdateFileSystem has no word for it",
        action="make another environment with it and carry the data over through S3",
        source=f"{UPDATE_FILE_SYSTEM}; FSx for Lustre guide, efa-file-systems",
    ),
    Policy(
        settings=(f"{LUSTRE}.metadata_iops",),
        effect=Effect.IN_PLACE,
        reason="metadata operations per second rise while the file system is used; the next increase waits six hours",
        source=METADATA,
        cases=(
            Case(
                when="it falls or is taken away",
                holds=lambda edit: vanishes(edit) or shrinks(edit),
                effect=Effect.REFUSED,
                reason="metadata operations per second can rise, and never fall",
                action="leave them as they are",
            ),
        ),
    ),
    Policy(
        settings=(f"{LUSTRE}.maintenance_window",),
        effect=Effect.IN_PLACE,
        reason="FSx patches at another time from now on; clients wait some minutes while it does",
        source=f"{UPDATE_FILE_SYSTEM}; FSx for Lustre guide, maintenance-windows",
    ),
    Policy(
        settings=(f"{LUSTRE}.compression",),
        effect=Effect.IN_PLACE,
        reason="what is written from now on is stored so; what is there stays as it is",
        source=f"{UPDATE_FILE_SYSTEM}; FSx for Lustre guide, data-compression",
    ),
    Policy(
        settings=(f"{LUSTRE}.preload",),
        effect=Effect.NEW_NODES,
        reason="folders are fetched when the cluster is made; later, lifecycle scripts of new nodes know of it",
        action="to fetch a folder now, run lfs hsm_restore on its files",
        source="FSx for Lustre guide, preload-file-contents-hsm-dra",
    ),
    Policy(
        settings=(DATASET,),
        effect=Effect.IN_PLACE,
        reason="a data repository association is made; files and objects are listed while the file system is used",
        source=ASSOCIATIONS,
        cases=(
            Case(
                when="it is removed",
                holds=vanishes,
                effect=Effect.IN_PLACE,
                reason="files stay in the file system and objects in the bucket, but are not kept equal any more",
                action="wait for exports to end",
            ),
            Case(
                when="it is renamed",
                holds=_is_renamed,
                effect=Effect.REFUSED,
                reason="its association overlaps with that of the old name, which is deleted only after it is made",
                action="remove the old one and deploy, then add this one",
            ),
        ),
    ),
    Policy(
        settings=(f"{DATASET}.name",),
        effect=Effect.REFUSED,
        reason="datasets are known by their names: the association of the new name overlaps with that of the old one",
        action="remove the dataset and deploy, then add it under its new name",
        source=ASSOCIATIONS,
    ),
    Policy(
        settings=(f"{DATASET}.file_system_path",),
        effect=Effect.REPLACES_RESOURCE,
        reason="another folder is associated; the files in the old one stay and are not kept equal any more",
        source=CREATE_ONLY,
        cases=(OVERLAPS,),
    ),
    Policy(
        settings=(f"{DATASET}.s3_prefix", f"{DATASET}.s3_uri"),
        effect=Effect.REPLACES_RESOURCE,
        reason="another prefix is associated; objects under the old one stay",
        source=CREATE_ONLY,
        cases=(OVERLAPS,),
    ),
    Policy(
        settings=(f"{DATASET}.auto_export",),
        effect=Effect.IN_PLACE,
        reason="changes of files from now on are exported by it",
        source="FSx API, UpdateDataRepositoryAssociation",
    ),
    Policy(
        settings=(f"{DATASET}.auto_import",),
        effect=Effect.IN_PLACE,
        reason="changes of objects from now on are imported by it",
        source=f"FSx API, UpdateDataRepositoryAssociation; {CREATE_ONLY}",
        cases=(
            Case(
                when="it begins or ends",
                holds=lambda edit: bool(edit.old) != bool(edit.new),
                effect=Effect.REFUSED,
                reason="whether objects are listed at first is chosen when it is made, and a new one overlaps",
                action=ADD_AGAIN,
            ),
        ),
    ),
    Policy(
        settings=("storage.home.throughput_mbps",),
        effect=Effect.IN_PLACE,
        reason="file servers are exchanged: home directories do not answer for some minutes",
        action="end all work in them first",
        source="FSx API, UpdateFileSystemOpenZFSConfiguration",
    ),
)

GUIDE = "SageMaker guide, smcluster-getting-started-slurm-cli"
NO_INTERRUPTION = "CloudFormation reference, ClusterLifeCycleConfig: no interruption"
EVERYWHERE = f"{REPLACE_NODES}; the controller gets it with UpdateClusterSoftware alone"

NODES = (
    Policy(
        settings=("lifecycle.mode", "cluster.instance_groups[].lifecycle_mode"),
        effect=Effect.NEW_NODES,
        reason="running nodes stay as they were made; new nodes use the new mode",
        action=EVERYWHERE,
        source=f"{LIFECYCLE_UPDATE}; {GUIDE}; {NO_INTERRUPTION}",
        cases=(
            Case(
                when="no group gets another mode by it",
                holds=lambda edit: not changes_modes(edit),
                effect=Effect.NOTHING,
                reason="it states the present value",
            ),
            Case(
                when="scripts give custom up",
                holds=leaves_custom,
                effect=Effect.NEW_NODES,
                reason="running nodes stay as they were made; the AMI makes the next ones ready, if it is new enough",
                action=f"run UpdateClusterSoftware first, or AWS asks for a compatible AMI; {EVERYWHERE}",
            ),
        ),
    ),
    Policy(
        settings=(
            "lifecycle.users[]",
            "lifecycle.users[].name",
            "lifecycle.users[].uid",
            "lifecycle.users[].home",
            "lifecycle.users[].groups",
            "lifecycle.scripts",
        ),
        effect=Effect.NEW_NODES,
        reason="lifecycle scripts run when a node is made; accounts and changes reach only nodes made from now on",
        action=f"{REPLACE_NODES}; or run the scripts on the nodes yourself",
        source=LIFECYCLE_UPDATE,
    ),
    Policy(
        settings=(
            "images",
            "images.training",
            "images.training.source",
            "images.training.repository",
            "images.training.digest",
        ),
        effect=Effect.IN_PLACE,
        reason="nodes may pull another image; jobs that run keep theirs",
        source="IAM, the policy of the nodes' role is changed",
    ),
    Policy(
        settings=(
            "images.job_operator",
            "images.job_operator.source",
            "images.job_operator.repository",
            "images.job_operator.digest",
        ),
        effect=Effect.IN_PLACE,
        reason="Helm exchanges the operator's pods; jobs train on, and keep their definition without an operator",
        source="Holdfast, containers/operator/chart",
    ),
    Policy(
        settings=(
            "images.health_agent",
            "images.health_agent.source",
            "images.health_agent.repository",
            "images.health_agent.digest",
        ),
        effect=Effect.NEW_NODES,
        reason="another image reaches pods at once; a node that was made with the agent's unit keeps its pod out",
        action=REPLACE_NODES,
        source=LIFECYCLE_UPDATE,
    ),
)
