"""9xx: capacity of an account for the cluster; "not checked" without an account."""

import datetime
from collections.abc import Iterator
from typing import Literal

from holdfast.catalog import instance_types, known_types
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import Cluster, Deployment, Group, InstanceGroup, RollingUpdate, groups_of
from holdfast.validation.rules.network import vpc_of

QUOTAS = "SageMaker developer guide, 'SageMaker HyperPod quotas'; Service Quotas"
FIRST_API_DRIVEN_AMI = datetime.date(2026, 1, 1)
MIGRATION = "SageMaker developer guide, 'SageMaker HyperPod Slurm cluster API configuration migration'"


@rule("HF901", title="The account's quota allows the nodes of each instance type", each=Cluster, source=QUOTAS)
def type_quota(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """The quota "TYPE for cluster usage" is 0 for accelerated types until an increase is granted, which takes days."""
    expected: dict[str, int] = {}
    for group in groups_of(cluster):
        for name in group.types[:1]:
            expected[name] = expected.get(name, 0) + group.instance_count
    if deployment.facts is None:
        return
    for name, count in expected.items():
        allowed = deployment.facts.cluster_quotas.get(name)
        if allowed is not None and count > allowed:
            yield refused(
                cluster.at("instance_groups"),
                f"{count} x {name}",
                allowed=f"{allowed:.0f}, the quota '{name} for cluster usage'",
                fix="ask Service Quotas for more, or take fewer",
            )


@rule("HF902", title="The account's quota allows the cluster's nodes in total", each=Cluster, source=QUOTAS)
def total_quota(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """There is a quota for the nodes of all HyperPod clusters together."""
    count = sum(group.instance_count for group in groups_of(cluster))
    if deployment.facts is None:
        return
    allowed = deployment.facts.cluster_quotas.get("")
    if allowed is not None and count > allowed:
        yield refused(
            cluster.at("instance_groups"),
            f"{count} nodes",
            allowed=f"{allowed:.0f}, the quota of nodes in all clusters",
            fix="ask Service Quotas for more, or take fewer",
        )


@rule(
    "HF903",
    title="The instance types are offered in the Availability Zone",
    each=Cluster,
    source="awsome-distributed-ai 204; EC2 DescribeInstanceTypeOfferings",
)
def offered_in_zone(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """Accelerated types are in few zones of a region, and zone names differ from account to account."""
    if deployment.facts is None:
        return
    for group in groups_of(cluster):
        vpc = vpc_of(group, cluster)
        zones = {subnet.availability_zone for subnet in vpc.subnets} - {None} if vpc is not None else set()
        for zone in zones:
            if group.types and not any((name, zone) in deployment.facts.offered for name in group.types):
                yield refused(
                    group.at("instance_type"),
                    f"{', '.join(group.types)} in {zone}",
                    allowed="types that the zone has",
                    fix="take a zone that has the type",
                )


@rule(
    "HF904",
    title="The account's quota allows the nodes' network interfaces",
    each=Cluster,
    source=f"{QUOTAS}: L-DF5E4CA3",
)
def interface_quota(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """Every EFA interface of every node is one in the account's VPC: 32 per P5."""
    known, needed = instance_types(), 0
    for group in groups_of(cluster):
        needed += group.instance_count * max(
            (max(1, known[name].efa_interfaces) for name in group.types if name in known), default=1
        )
    if cluster.vpc is None or deployment.facts is None:
        return
    left = deployment.facts.network_interfaces_left
    if needed > left:
        yield refused(
            cluster.at("instance_groups"),
            f"{needed} network interfaces",
            allowed=f"{left:.0f}, what is left of the quota",
            fix="ask Service Quotas for more",
        )


@rule("HF905", title="The account's quota allows another VPC", each=Cluster, source=f"{QUOTAS}: L-F678F1CE, L-0263D0A3")
def vpc_quota(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """A new network takes one of five VPCs per region, and with a NAT gateway one of five Elastic IPs."""
    if deployment.file is not None and deployment.file.existing_network:
        return
    if deployment.facts is None or deployment.network is None:
        return
    left = [("VPC", deployment.facts.vpcs_left)]
    if deployment.network.nat:
        left.append(("Elastic IP", deployment.facts.elastic_ips_left))
    for what, count in left:
        if count < 1:
            yield refused(
                cluster.at("vpc"), f"another {what}", allowed=f"{count:.0f} more", fix="ask Service Quotas for more"
            )


@rule("HF906", title="Rollback alarms exist", each=RollingUpdate, source="SageMaker API reference, AlarmDetails")
def alarms_exist(update: RollingUpdate, deployment: Deployment) -> Iterator[Broken]:
    """An alarm that does not exist stops no rollout."""
    names = [name for name in update.rollback_alarms if name not in deployment.alarm_names]
    if not names or deployment.facts is None:
        return
    missing = [name for name in names if name not in deployment.facts.alarms]
    if missing:
        yield refused(
            update.at("rollback_alarms"),
            ", ".join(missing),
            allowed="alarms that exist",
            fix="make them or remove them",
        )


@rule(
    "HF907",
    title="Training plans exist, with the instance type and nodes of the group",
    each=Group,
    source="SageMaker API reference, DescribeTrainingPlan",
)
def training_plan(group: Group, deployment: Deployment) -> Iterator[Broken]:
    """The plan exists, has not ended, and has the type, the zone and as many nodes."""
    arn = group.training_plan_arn
    if arn is None or deployment.facts is None:
        return
    plan = deployment.facts.training_plans.get(arn)
    vpc = vpc_of(group, deployment.cluster)
    zones = {subnet.availability_zone for subnet in vpc.subnets} if vpc is not None else set()
    wrong = None
    if plan is None:
        wrong = "which does not exist"
    elif plan.status not in ("Active", "Scheduled", "Pending"):
        wrong = f"which is {plan.status}"
    elif plan.instance_type not in group.types:
        wrong = f"which is for {plan.instance_type}"
    elif plan.available_count < group.instance_count:
        wrong = f"which has {plan.available_count} nodes for {group.instance_count}"
    elif zones and plan.availability_zones and not zones & plan.availability_zones:
        wrong = f"which is in {', '.join(sorted(plan.availability_zones))}"
    if wrong is not None:
        yield refused(
            group.at("training_plan_arn"),
            f"{arn.rpartition('/')[2]}, {wrong}",
            allowed="a plan with the group's type, zone and count",
            fix="name another plan, or change the group",
        )


@rule(
    "HF908",
    title="Existing subnets have enough addresses and are in the zone of the file",
    each=Cluster,
    source="EC2 DescribeSubnets",
)
def subnets_have_room(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """What others have in the subnet counts too, which its size does not tell."""
    named = [subnet for subnet in (cluster.vpc.subnets if cluster.vpc else ()) if subnet.id.startswith("subnet-")]
    if not named or deployment.facts is None:
        return
    orchestrator: Literal["slurm", "eks"] = "slurm" if cluster.eks is None else "eks"
    needed = sum(
        group.instance_count * max((each.addresses(orchestrator) for each in known_types(group.types)), default=1)
        for group in groups_of(cluster)
        if group.override_vpc is None
    )
    free = 0
    for subnet in named:
        there = deployment.facts.subnets.get(subnet.id)
        if there is None:
            yield refused(subnet.path, subnet.id, allowed="a subnet of the account", fix="correct the id")
            return
        free += there.free_addresses
        if subnet.availability_zone not in (None, there.availability_zone):
            yield refused(
                subnet.at("availability_zone"),
                f"{subnet.id} in {subnet.availability_zone}",
                allowed=f"{there.availability_zone}, where it is",
                fix=f"write {there.availability_zone}",
            )
    if free < needed:
        yield refused(
            named[0].path,
            f"{free} free addresses",
            allowed=f"room for the {needed} that the groups need",
            fix="take a larger subnet, or fewer nodes",
        )


@rule(
    "HF909",
    title="Custom AMIs meet HyperPod's requirements",
    each=InstanceGroup,
    source=f"SageMaker API reference, ImageId; {MIGRATION}",
)
def machine_image(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    An AMI of one's own is unencrypted, of the same account and of one volume. Slurm that is configured through the API
    needs one of January 2026 or later.
    """
    if group.image_id in (None, "default") or deployment.facts is None:
        return
    image = deployment.facts.images.get(group.image_id or "")
    wrong = None
    if image is None:
        wrong = "which does not exist here"
    elif image.owner not in ("amazon", deployment.account):
        wrong = f"which belongs to {image.owner}"
    elif image.owner != "amazon" and image.encrypted:
        wrong = "which is encrypted"
    elif image.owner != "amazon" and image.volumes > 1:
        wrong = f"which has {image.volumes} volumes"
    elif deployment.cluster.slurm is not None and image.created < FIRST_API_DRIVEN_AMI:
        wrong = f"which is of {image.created:%Y-%m}"
    if wrong is not None:
        yield refused(
            group.at("image_id"),
            f"{group.image_id}, {wrong}",
            allowed="HyperPod's own, or an unencrypted one of the account with one volume; for Slurm of 2026 or later",
            fix="take another AMI",
        )


@rule(
    "HF910",
    title="Existing security groups allow traffic between their members",
    each=Cluster,
    source="EC2 DescribeSecurityGroupRules",
)
def existing_security_groups(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """What HF204 and HF205 say of a security group that is made here has to hold for one that is there already."""
    named = [group for group in (cluster.vpc.security_groups if cluster.vpc else ()) if group.id.startswith("sg-")]
    if not named or deployment.facts is None:
        return
    for group in named:
        there = deployment.facts.security_groups.get(group.id)
        if there is None or not (there.from_itself and there.to_itself):
            yield refused(
                group.path,
                group.id if there is not None else f"{group.id}, which does not exist",
                allowed="a group that allows all traffic from and to itself",
                fix="add both rules, with the group itself as the other end",
            )
