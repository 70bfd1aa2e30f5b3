"""2xx: what EFA needs of security groups, zones and instance types."""

from collections.abc import Iterable, Iterator

from holdfast.catalog import instance_types, known_types
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    Cluster,
    Deployment,
    Group,
    InstanceGroup,
    SecurityGroup,
    Traffic,
    groups_of,
    zones_of,
)
from holdfast.validation.rules.network.subnets import PREREQUISITES, all_security_groups, vpc_of

EFA = "EC2 user guide, 'Get started with EFA': a security group that allows all traffic to and from itself"


def efa_interfaces(group: Group) -> int:
    """EFA interfaces of the group's largest type; 0 if unknown."""
    return max((each.efa_interfaces for each in known_types(group.types)), default=0)


def lets_in(group: SecurityGroup, rules: Iterable[Traffic]) -> bool:
    return any(rule.protocol == "-1" and rule.peer == group.id for rule in rules)


@rule("HF204", title="Security groups of EFA nodes let in all traffic from themselves", each=Cluster, source=EFA)
def efa_ingress(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    EFA's addresses are neither IPv4 nor IPv6, so only a rule that names the security group itself covers them. With
    several groups every one needs it; else the cluster fails, or NCCL does once training starts.
    """
    for group in _security_groups_of_efa(cluster):
        if not lets_in(group, group.ingress):
            yield refused(
                group.at("ingress"),
                "no rule that allows all traffic from the group itself",
                allowed="one with protocol -1 and the group as its own source",
                fix="add an ingress rule with the group itself as source",
            )


@rule(
    "HF205",
    title="Security groups of EFA nodes let out all traffic to themselves",
    each=Cluster,
    source=f"{EFA}; awsome-distributed-ai 546",
)
def efa_egress(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    Egress to 0.0.0.0/0 does not count: it covers no address of EFA. The CDK drops a rule to the group itself in silence
    while allow_all_outbound is true, and the failure is NCCL's "Unreachable remote" after bootstrap over TCP.
    """
    for group in _security_groups_of_efa(cluster):
        if not lets_in(group, group.egress):
            yield refused(
                group.at("egress"),
                "no rule that allows all traffic to the group itself",
                allowed="one with protocol -1 and the group as its own destination; 0.0.0.0/0 does not cover EFA",
                fix="add an egress rule to the group itself; in the CDK, with allow_all_outbound false",
            )


@rule(
    "HF208",
    title="All groups with EFA are in one Availability Zone",
    each=Cluster,
    source=f"{PREREQUISITES}: EFA does not cross zones",
)
def efa_in_one_zone(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    EFA traffic does not leave its availability zone. A group whose subnets are in two zones has nodes that cannot reach
    each other that way.
    """
    for group in groups_of(cluster):
        vpc = vpc_of(group, cluster)
        if vpc is None or not efa_interfaces(group):
            continue
        zones = sorted({zone for zone in zones_of(vpc.subnets) if zone is not None})
        if len(zones) > 1:
            yield refused(
                vpc.at("subnets"),
                f"subnets in {', '.join(zones)} for the EFA group {group.name}",
                allowed="one zone",
                fix="keep the subnets of one zone",
            )


@rule(
    "HF218",
    title="EFA interfaces are requested on instance types with EFA only",
    each=InstanceGroup,
    source="EC2 DescribeInstanceTypes, EfaInfo; holdfast/catalog",
)
def efa_where_it_is(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """NetworkInterface says efa or efa-only. Other types have no such interface."""
    expected, known = group.network_interface, instance_types()
    if expected is None:
        return
    if expected not in ("efa", "efa-only"):
        yield refused(group.at("network_interface"), show(expected), allowed="efa or efa-only", fix="write efa")
    without = [name for name in group.types if name in known and not known[name].efa_interfaces]
    if without:
        yield refused(
            group.at("network_interface"),
            f"{expected} on {', '.join(without)}",
            allowed="types with EFA",
            fix="remove it, or take a type with EFA",
        )


def _security_groups_of_efa(cluster: Cluster) -> list[SecurityGroup]:
    vpcs = [vpc_of(group, cluster) for group in groups_of(cluster) if efa_interfaces(group)]
    return all_security_groups(dict.fromkeys(vpc for vpc in vpcs if vpc is not None))
