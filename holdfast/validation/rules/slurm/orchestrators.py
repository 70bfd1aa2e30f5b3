"""4xx: orchestrators and what Slurm needs."""

from collections.abc import Iterator

from holdfast.catalog import known_types
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import AccountingDatabase, Cluster, Deployment, EnvironmentFile, InstanceGroup, Slurm
from holdfast.validation.rules.lifecycle import ERRORS

MIGRATION = "SageMaker developer guide, 'SageMaker HyperPod Slurm cluster API configuration migration'"
REFERENCE = "SageMaker developer guide, 'SageMaker HyperPod references'"
NODE_TYPES = ("Controller", "Login", "Compute")
STRATEGIES = ("Overwrite", "Managed", "Merge")


@rule(
    "HF401",
    title="A cluster has one orchestrator, Slurm or EKS",
    each=Cluster,
    source="SageMaker API reference, ClusterOrchestrator",
)
def one_orchestrator(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """Orchestrator holds Eks or Slurm. CloudFormation accepts both, the API does not."""
    if cluster.eks is not None and cluster.slurm is not None:
        yield refused(cluster.at("slurm"), "Eks and Slurm", allowed="one of them", fix="remove one")


@rule(
    "HF403",
    title="Slurm has one Controller group",
    each=Slurm,
    source=f"{MIGRATION}: 'no InstanceGroup with Controller node type', 'N Controller Groups found'; {ERRORS}",
)
def one_controller_group(_: Slurm, deployment: Deployment) -> Iterator[Broken]:
    """
    The creation fails after the network, the file systems and the scripts were made: "Cluster must have exactly one
    InstanceGroup with Controller node type".
    """
    cluster = deployment.cluster
    if cluster.eks is not None:
        return
    controllers = [group for group in cluster.instance_groups if group.node_type == "Controller"]
    if len(controllers) == 1:
        return
    yield refused(
        controllers[1].at("node_type") if controllers else cluster.at("instance_groups"),
        f"{len(controllers)} groups of node type Controller",
        allowed="exactly one",
        fix="make the others Compute or Login" if controllers else "add a group of node type Controller",
    )


@rule("HF404", title="Slurm has at most one Login group", each=Slurm, source=REFERENCE)
def one_login_group(_: Slurm, deployment: Deployment) -> Iterator[Broken]:
    """It may have several nodes."""
    logins = [group for group in deployment.cluster.instance_groups if group.node_type == "Login"]
    if len(logins) > 1:
        yield refused(
            logins[1].at("node_type"),
            f"{len(logins)} groups of node type Login",
            allowed="at most one",
            fix="join them",
        )


@rule(
    "HF405",
    title="The Controller group has one node",
    each=InstanceGroup,
    source=f"{MIGRATION}: several heads need the legacy mode",
)
def one_controller_node(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """slurmctld runs on one node. A lost one is replaced, so it needs no spare either."""
    if group.node_type == "Controller" and group.instance_count != 1:
        yield refused(
            group.at("instance_count"),
            f"{group.instance_count} nodes, spares included",
            allowed="1 on the Controller group",
            fix="write a count of 1, and no spares",
        )


@rule("HF406", title="Compute groups have a partition", each=InstanceGroup, source=REFERENCE)
def partition_of_compute(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """Jobs are submitted to partitions; nodes in none get no job."""
    if group.node_type == "Compute" and not group.partitions:
        yield refused(
            group.at("partitions"), "nothing", allowed="a partition on every Compute group", fix="add a partition: dev"
        )


@rule(
    "HF407",
    title="Only Compute groups have a partition",
    each=InstanceGroup,
    source=f"{REFERENCE}; {MIGRATION}; {ERRORS}",
)
def partition_elsewhere(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    CreateCluster refuses PartitionNames on Controller and Login groups: "Partitions can only be assigned to Compute
    node types". CloudFormation's validation does not.
    """
    if group.node_type in ("Controller", "Login") and group.partitions:
        yield refused(
            group.at("partitions"),
            show(group.partitions[0]),
            allowed=f"no partition on a {group.node_type} group",
            fix="remove the partition",
        )


@rule(
    "HF409",
    title="No partition is called default",
    each=InstanceGroup,
    source="Slurm documentation, slurm.conf PartitionName",
)
def partition_default(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    In slurm.conf the name DEFAULT, in any case, stands for what all partitions have in common. No such partition is
    made, and slurmctld's configuration is another than it looks.
    """
    for name in group.partitions:
        if name.lower() == "default":
            yield refused(group.at("partitions"), show(name), allowed="another name", fix="write dev")


@rule("HF410", title="Every group of a Slurm cluster has a Slurm node type", each=InstanceGroup, source=MIGRATION)
def node_type_is_there(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """Controller, Login or Compute. Once the orchestrator is Slurm, a group without SlurmConfig has no place in it."""
    if deployment.cluster.slurm is None or deployment.cluster.eks is not None:
        return
    if group.node_type is None:
        yield refused(
            group.at("node_type"), "nothing", allowed="a node type on every group", fix="add node type Compute"
        )
    elif group.node_type not in NODE_TYPES:
        yield refused(
            group.at("node_type"), show(group.node_type), allowed=f"one of {', '.join(NODE_TYPES)}", fix="write Compute"
        )


@rule(
    "HF411",
    title="Groups of an EKS cluster have no Slurm node type",
    each=InstanceGroup,
    source="SageMaker API reference, ClusterSlurmConfig",
)
def node_type_on_eks(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """SlurmConfig belongs to Slurm."""
    if deployment.cluster.eks is not None and group.node_type is not None:
        yield refused(
            group.at("node_type"), show(group.node_type), allowed="no node type on EKS", fix="remove the group's slurm"
        )


@rule(
    "HF412",
    title="With continuous provisioning no Slurm configuration strategy is set",
    each=Slurm,
    source=f"{MIGRATION}; 'Continuous provisioning'",
)
def strategy_and_continuous(slurm: Slurm, deployment: Deployment) -> Iterator[Broken]:
    """With node provisioning mode Continuous the API refuses any SlurmConfigStrategy, Managed included."""
    if slurm.config_strategy is not None and deployment.cluster.continuous:
        yield refused(
            slurm.at("config_strategy"),
            show(slurm.config_strategy),
            allowed="no strategy with node provisioning mode Continuous",
            fix="remove the strategy",
        )


@rule(
    "HF414",
    title="An accounting database needs continuous provisioning",
    each=AccountingDatabase,
    source="SageMaker API reference, AccountingDatabase",
)
def accounting_and_continuous(database: AccountingDatabase, deployment: Deployment) -> Iterator[Broken]:
    """
    An external database is supported with node provisioning mode Continuous only. Without one, accounting is kept on
    the controller and is lost with it.
    """
    if not deployment.cluster.continuous:
        yield refused(
            database.path,
            "an external database without continuous provisioning",
            allowed="one in a cluster with node provisioning mode Continuous",
            fix="set the cluster's node provisioning mode to Continuous, or remove the database",
        )


@rule(
    "HF415",
    title="An accounting database is either new, or given by endpoint and secret",
    each=EnvironmentFile,
    source="SageMaker API reference, AccountingDatabase",
)
def accounting_settings(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """`create: true` makes one, with all that belongs to it. An existing one needs `endpoint` and `secret_arn`."""
    if file.accounting_created is None:
        return
    reported = file.accounting_settings
    if file.accounting_created and reported:
        yield refused(
            file.at("accounting_settings"),
            f"create with {', '.join(reported)}",
            allowed="one of a new database and an existing one",
            fix="remove create, or the rest",
        )
    missing = [name for name in ("endpoint", "secret_arn") if name not in reported]
    if not file.accounting_created and missing:
        yield refused(
            file.at("accounting_settings"),
            f"no {' and no '.join(missing)}",
            allowed="create: true, or endpoint and secret_arn",
            fix="write accounting: {create: true}",
        )


@rule(
    "HF418",
    severity="warning",
    title="The Slurm controller is on an instance type without accelerators",
    each=InstanceGroup,
    source="Holdfast",
)
def controller_type(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """No job runs on the node of slurmctld, so its GPUs would idle at full price."""
    wasted = [each.name for each in known_types(group.types) if each.accelerators]
    if group.node_type in ("Controller", "Login") and wasted:
        yield Broken(
            path=group.at("instance_type"),
            message=f"{wasted[0]} has accelerators, and no job runs on a {group.node_type} group",
            fix="take a type like ml.m5.2xlarge",
        )
