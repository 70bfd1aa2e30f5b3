"""7xx: how capacity is bought, how nodes are checked, and what is there when one is lost."""

import re
from collections.abc import Iterator

from holdfast.catalog import known_types, limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, Group, InstanceGroup, RestrictedGroup, groups_of

API = "SageMaker API reference"
SPOT = "SageMaker developer guide, 'Using spot instances on SageMaker HyperPod'"
PLANS = "SageMaker developer guide, 'Training plans'"
ULTRA_SERVER = "ml.p6e-gb200."
PLAN_ARN = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]*):(\d{12}):training-plan/.+")
CHECKS = ("InstanceStress", "InstanceConnectivity")
CHECK_OF_SEVERAL = "InstanceConnectivity"
ALLOCATABLE_PERCENT = 80
NODES_THAT_WANT_A_SPARE = 16


@rule("HF701", title="Spot needs EKS and continuous provisioning", each=InstanceGroup, source=SPOT)
def spot(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """How capacity is bought cannot be changed after the group was made."""
    if group.capacity not in (None, "spot", "on-demand"):
        yield refused(group.at("capacity"), show(group.capacity), allowed="spot or on-demand", fix="write spot")
    cluster = deployment.cluster
    if group.capacity == "spot" and (cluster.eks is None or not cluster.continuous):
        yield refused(
            group.at("capacity"),
            "spot under Slurm" if cluster.eks is None else "spot without continuous provisioning",
            allowed="spot on EKS with node provisioning mode Continuous",
            fix="remove it" if cluster.eks is None else "set node provisioning mode to Continuous",
        )


@rule("HF702", title="A group is either Spot or of a training plan", each=InstanceGroup, source=PLANS)
def spot_and_plan(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """A training plan is reserved capacity. Spot is unreserved capacity."""
    if group.capacity == "spot" and group.is_given("training_plan_arn"):
        yield refused(
            group.at("capacity"), "spot with a training plan", allowed="one of them", fix="remove one of them"
        )


@rule("HF704", title="Training plans are in the environment's account and region", each=Group, source=PLANS)
def plan_is_here(group: Group, deployment: Deployment) -> Iterator[Broken]:
    """Capacity that is reserved elsewhere is not to be had here."""
    match = PLAN_ARN.fullmatch(group.training_plan_arn or "")
    if match is None:
        return
    for what, there, here in (
        ("region", match[1], deployment.region),
        ("account", match[2], deployment.account),
    ):
        if here is not None and there != here:
            yield refused(
                group.at("training_plan_arn"),
                f"a plan of {what} {there}",
                allowed=f"one of {what} {here}",
                fix="name a plan of this account and region",
            )


@rule(
    "HF705",
    title="Training plans are for an instance type that they can reserve",
    each=Group,
    source=f"{API}, ReservedCapacityInstanceType",
    suppressible=True,
)
def plan_types(group: Group, _: Deployment) -> Iterator[Broken]:
    """
    Plans reserve one type of accelerated instance each, so a group with a plan has one type, and it is one of those in
    holdfast/catalog/limits.json.
    """
    if group.training_plan_arn is None:
        return
    wrong = [name for name in group.types if name not in limits("training_plan_types")]
    if wrong or len(group.types) > 1:
        yield refused(
            group.at("training_plan_arn"),
            f"a plan for {', '.join(group.types)}",
            allowed=f"one of {', '.join(limits('training_plan_types'))}",
            fix="remove the plan, or write the type that it reserves" if wrong else "leave the one type of the plan",
        )


@rule(
    "HF739",
    title="A training plan has as many nodes as its groups",
    each=Cluster,
    source="SageMaker developer guide, 'Search training plan offerings': 1, 2, 4, 8, 16, 32 or 64 instances",
    suppressible=True,
)
def plan_count(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """Groups may share a plan, and leave some of its nodes unused. Of UltraServers a plan counts the servers."""
    most = max(limits("training_plan_instances"))
    asked: dict[str, int] = {}
    for group in groups_of(cluster):
        plan = group.training_plan_arn
        if plan is None or any(name.startswith(ULTRA_SERVER) for name in group.types):
            continue
        asked[plan] = asked.get(plan, 0) + group.instance_count
        if asked[plan] - group.instance_count <= most < asked[plan]:
            yield refused(
                group.at("instance_count"),
                f"{asked[plan]} nodes of the plan {plan.rpartition('/')[2]}",
                allowed=f"at most {most}, with spares and with all groups of the plan",
                fix="take the other nodes from another plan, in a group of their own",
            )


@rule(
    "HF706",
    severity="warning",
    title="Deep health checks are on accelerated instance types",
    each=Group,
    source="SageMaker developer guide, EKS prerequisites: GPU and Trainium only",
)
def deep_checks_on_cpus(group: Group, _: Deployment) -> Iterator[Broken]:
    """On other types they check nothing. Nor does HyperPod replace nodes of CPU groups by itself."""
    if group.deep_health_checks and any(not each.accelerators for each in known_types(group.types)):
        yield Broken(
            path=group.at("deep_health_checks"),
            message=f"deep health checks do nothing on {', '.join(group.types)}, which have no accelerator",
            fix="remove the checks",
        )


@rule(
    "HF707",
    severity="warning",
    title="The InstanceConnectivity check has at least two nodes",
    each=Group,
    source="Holdfast",
)
def deep_checks_on_one_node(group: Group, _: Deployment) -> Iterator[Broken]:
    """InstanceConnectivity measures what is between nodes."""
    if CHECK_OF_SEVERAL in group.deep_health_checks and group.instance_count < 2:
        yield Broken(
            path=group.at("deep_health_checks"),
            message=f"{CHECK_OF_SEVERAL} on {group.instance_count} node, which needs two",
            fix="keep InstanceStress only, or take two nodes",
        )


@rule(
    "HF708",
    title="Deep health checks exist, and none is listed twice",
    each=Group,
    source="Resource schema of AWS::SageMaker::Cluster, DeepHealthCheckType (cfn-lint 1.58, of 2026-10-20)",
)
def deep_checks_are_known(group: Group, _: Deployment) -> Iterator[Broken]:
    """
    InstanceStress and InstanceConnectivity. MultiNodeTrainingValidation is in the API alone: CloudFormation checks
    properties against the resource's schema before anything is made, and refuses it.
    """
    checks = group.deep_health_checks
    unknown = [check for check in checks if check not in CHECKS]
    if unknown or len(set(checks)) < len(checks):
        yield refused(
            group.at("deep_health_checks"),
            ", ".join(map(show, unknown)) or "a check twice",
            allowed=f"each of {', '.join(CHECKS)} once",
            fix="correct the list",
        )


@rule(
    "HF717",
    title="Tiered storage is for EKS and takes 20 to 100 percent",
    each=Cluster,
    source=f"{API}, TieredStorageConfig",
)
def tiered_storage(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """Checkpoints in the memory of nodes, by a daemon in Kubernetes."""
    percent = cluster.tiered_storage_percent
    if percent is None:
        return
    if cluster.eks is None:
        yield refused(
            cluster.at("tiered_storage_percent"),
            "tiered storage under Slurm",
            allowed="tiered storage on EKS",
            fix="remove it",
        )
    if not 20 <= percent <= 100:
        yield refused(cluster.at("tiered_storage_percent"), str(percent), allowed="20 to 100", fix="write 20")


@rule("HF718", severity="warning", title="Tiered storage leaves enough memory to pods", each=Cluster, source="Holdfast")
def memory_for_pods(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """What checkpoints get, pods do not: data loaders, pinned buffers and the page cache live there too."""
    percent = cluster.tiered_storage_percent
    if percent is not None and ALLOCATABLE_PERCENT < percent <= 100:
        yield Broken(
            path=cluster.at("tiered_storage_percent"),
            message=f"{percent} % of every node's memory is for checkpoints, and pods get the rest",
            fix=f"take at most {ALLOCATABLE_PERCENT} percent",
        )


@rule(
    "HF719",
    title="Restricted groups are on EKS, without continuous provisioning or Karpenter",
    each=Cluster,
    source="awsome-distributed-ai, hyperpod-eks-tf: rig_mode",
)
def restricted_groups(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """They are for EKS, and neither for continuous provisioning nor for Karpenter."""
    if not cluster.restricted_groups:
        return
    for wrong, given, fix in (
        (cluster.eks is None, "restricted groups under Slurm", "take EKS"),
        (cluster.continuous, "restricted groups with continuous provisioning", "remove the provisioning mode"),
        (cluster.auto_scaler is not None, "restricted groups with Karpenter", "remove the auto scaler"),
    ):
        if wrong:
            yield refused(
                cluster.at("restricted_groups"),
                given,
                allowed="restricted groups on EKS, without continuous provisioning and Karpenter",
                fix=fix,
            )


@rule("HF720", title="Restricted groups have a file system", each=RestrictedGroup, source=f"{API}, EnvironmentConfig")
def restricted_file_system(group: RestrictedGroup, deployment: Deployment) -> Iterator[Broken]:
    """One of their own, or the one that they share. Users cannot log in and mount another."""
    if group.lustre is None and deployment.cluster.restricted_lustre is None:
        yield refused(
            group.at("lustre"), "no file system", allowed="one of the group, or a shared one", fix="add lustre"
        )


@rule(
    "HF721",
    severity="warning",
    title="Large groups have a spare node",
    each=InstanceGroup,
    source="Holdfast; `holdfast plan` shows its value",
)
def spare(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    Without a spare a lost node stops training until AWS has found another, which takes from minutes to days for types
    that are scarce. A training plan has the nodes that were bought.
    """
    if group.spare_count != 0 or group.instance_count < NODES_THAT_WANT_A_SPARE or group.capacity == "spot":
        return
    if group.training_plan_arn is not None:
        return
    if any(each.efa_interfaces and each.accelerators for each in known_types(group.types)):
        yield Broken(
            path=group.at("spare_count"),
            message=f"group {group.name} trains on {group.instance_count} nodes with no spare",
            fix="add a spare, or accept that a lost node stops training until AWS provides another",
        )


@rule(
    "HF722",
    severity="warning",
    title="Node recovery replaces faulty nodes",
    each=Cluster,
    source="SageMaker developer guide, 'Cluster resiliency'",
)
def recovery_is_on(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """With node recovery None a node that fails stays, and so does every job on it, until an operator acts."""
    if cluster.node_recovery == "None":
        yield Broken(
            path=cluster.at("node_recovery"),
            message="failed nodes are neither rebooted nor replaced",
            fix="set node recovery to Automatic",
        )


@rule(
    "HF723",
    severity="warning",
    title="A group's minimum instance count leaves out its spares",
    each=InstanceGroup,
    source="Holdfast",
)
def minimum_and_spares(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    A minimum that counts spares in rolls the group back when all that is missing is what would have idled. A minimum of
    all nodes is meant: all or none.
    """
    if group.min_instance_count is None or not group.spare_count:
        return
    working = group.instance_count - group.spare_count
    if working < group.min_instance_count < group.instance_count:
        yield Broken(
            path=group.at("min_instance_count"),
            message=f"the minimum of {group.min_instance_count} counts spares in; {working} nodes work",
            fix=f"write {working} or less",
        )
