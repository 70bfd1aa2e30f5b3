"""2xx: subnets, security groups and ways out."""

from collections.abc import Iterable, Iterator

from holdfast.catalog import bounds, limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    Cluster,
    Deployment,
    EnvironmentFile,
    Group,
    Network,
    SecurityGroup,
    Subnet,
    UnresolvedError,
    VpcConfig,
    groups_of,
    zones_of,
)
from holdfast.validation.rules.lifecycle import ERRORS

PREREQUISITES = "SageMaker developer guide, 'Prerequisites for using SageMaker HyperPod'"
RULES = bounds("security_group_rules").most
ANYWHERE = ("0.0.0.0/0", "::/0")
DUMMY_ZONES = ("dummy1a", "dummy1b", "dummy1c")
"""What the CDK writes where it has not looked up the zones of an account yet, as in every unit test of an app."""


def vpc_of(group: Group, cluster: Cluster) -> VpcConfig | None:
    return cluster.vpc if group.override_vpc is None else group.override_vpc


@rule(
    "HF201", title="A cluster has a VPC where its options need one", each=Cluster, source=f"{PREREQUISITES}; {ERRORS}"
)
def vpc_is_there(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    EKS always needs VpcConfig. Under Slurm it is needed for groups with subnets of their own and for file systems that
    nodes mount: "FSx configurations are only supported for Custom VPC", says the service. It cannot be added later:
    that replaces the cluster.
    """
    if cluster.vpc is not None:
        return
    reasons = ["EKS"] * (cluster.eks is not None)
    reasons += ["groups with a VPC of their own"] * any(group.override_vpc for group in groups_of(cluster))
    reasons += ["file systems"] * any(group.mounts for group in cluster.instance_groups)
    if reasons:
        yield refused(
            cluster.at("vpc"),
            f"no VpcConfig, and {' and '.join(reasons)}",
            allowed="one with private subnets and a security group",
            fix="add VpcConfig",
        )


@rule(
    "HF203",
    title="Nodes are in private subnets",
    each=Cluster,
    source="SageMaker developer guide, EKS prerequisites; awsome-distributed-ai, validate-config.py",
)
def private_subnets(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    Network interfaces of nodes get no public address, so in a subnet whose way out is an internet gateway they reach
    nothing, and lifecycle scripts time out.
    """
    for subnet in all_subnets(all_vpcs(cluster)):
        if subnet.public:
            yield refused(
                subnet.at("public"),
                "a subnet that routes to an internet gateway",
                allowed="private subnets for nodes",
                fix="take a subnet behind a NAT gateway, or one without a way out",
            )


@rule(
    "HF221",
    title=f"A security group has at most {RULES} rules in a direction",
    each=SecurityGroup,
    source="VPC user guide, 'Amazon VPC quotas': inbound or outbound rules per security group",
    suppressible=True,
)
def number_of_rules(group: SecurityGroup, _: Deployment) -> Iterator[Broken]:
    """IPv4 and IPv6 count apart, a rule for a group for both. The quota can be raised: then suppress this."""
    for direction in ("ingress", "egress"):
        rules = getattr(group, direction) if group.is_known(direction) else ()
        ipv4 = [each for each in rules if each.is_known("peer") and ":" not in each.peer]
        if len(ipv4) > RULES:
            yield refused(
                group.at(direction),
                f"{len(ipv4)} rules",
                allowed=f"at most {RULES}",
                fix="join blocks and ranges of ports, or name a prefix list",
            )


@rule(
    "HF249",
    title="Security groups of nodes let HTTPS out",
    each=Cluster,
    source=f"{PREREQUISITES}: nodes store and retrieve scripts, data and models in S3",
)
def https_out(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """
    S3, also through a gateway endpoint, and AWS's APIs are outside of the group: a rule for TCP 443 names their
    addresses, a prefix list or the group of interface endpoints. Groups that Holdfast makes have one.
    """
    for vpc in all_vpcs(cluster) if deployment.app is not None else ():
        own = {group.id for group in vpc.security_groups}
        rules = [each for group in vpc.security_groups for each in group.egress]
        if own and not any(each.peer not in own and each.covers(443, 443) for each in rules):
            yield refused(
                vpc.security_groups[0].at("egress"),
                "no rule that lets HTTPS out of the group",
                allowed="TCP 443 to S3 and AWS's other services",
                fix="add an egress rule for TCP 443 to 0.0.0.0/0, or to the VPC's block and the prefix list of S3",
            )


@rule(
    "HF206",
    severity="warning",
    title="Security groups of a closed network let out no traffic to everywhere",
    each=Cluster,
    source=PREREQUISITES,
)
def closed_egress(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """
    Where no route leads to the internet, a rule that allows all traffic to anywhere is of no use now and too much as
    soon as somebody adds a route.
    """
    network = deployment.network
    if network is None or network.way_out:
        return
    for group in all_security_groups(all_vpcs(cluster)):
        for rule_out in group.egress:
            if rule_out.protocol == "-1" and rule_out.peer in ANYWHERE:
                yield Broken(
                    path=rule_out.path,
                    message=f"all traffic to {rule_out.peer} is allowed in a network without a way out",
                    fix="limit it to the VPC's block and, for S3, to port 443",
                )


@rule(
    "HF207",
    title="No security group is open to the internet",
    each=SecurityGroup,
    source="AWS Well-Architected, SEC05-BP02",
)
def open_ingress(group: SecurityGroup, _: Deployment) -> Iterator[Broken]:
    """
    Nodes and file systems talk to each other and to AWS. Logins use Session Manager, so no rule from
    0.0.0.0/0 is needed.
    """
    for rule_in in group.ingress:
        if rule_in.peer in ANYWHERE:
            yield refused(
                rule_in.path, f"ingress from {rule_in.peer}", allowed="known sources", fix="name a group or a block"
            )


@rule(
    "HF210",
    title="Availability Zones are of the environment's region",
    each=Subnet,
    source="EC2 user guide, 'Regions and zones'",
)
def zone_in_region(subnet: Subnet, deployment: Deployment) -> Iterator[Broken]:
    """
    The name of a zone is that of its region and a letter; that of a Local or Wavelength Zone continues with a place, as
    in us-west-2-phx-2a.
    """
    if subnet.availability_zone_id is not None:
        return  # HF085
    zone, region = subnet.availability_zone, deployment.region
    if zone in DUMMY_ZONES:
        raise UnresolvedError(subnet.at("availability_zone"))
    if zone is not None and region is not None and zone[:-1] != region and not zone.startswith(f"{region}-"):
        yield refused(
            subnet.at("availability_zone"),
            show(zone),
            allowed=f"a zone of region {region}",
            fix=f"write {region}{zone[-1:]}, or change the region",
        )


@rule("HF211", title="A network without internet access has an S3 endpoint", each=Network, source=PREREQUISITES)
def s3_in_a_closed_network(network: Network, _: Deployment) -> Iterator[Broken]:
    """
    Lifecycle scripts come from S3. Without a NAT gateway nodes reach it through a gateway endpoint in the route tables
    of their subnets, or not at all, and the creation times out.
    """
    if not network.way_out and not network.s3_gateway:
        yield refused(
            network.at("s3_gateway"),
            "neither a NAT gateway nor a gateway endpoint to S3",
            allowed="an endpoint in the nodes' route tables",
            fix="add a gateway endpoint to S3 to their route tables",
        )


@rule(
    "HF212", severity="warning", title="S3 traffic does not pay for the NAT gateway", each=Network, source=PREREQUISITES
)
def s3_past_nat(network: Network, _: Deployment) -> Iterator[Broken]:
    """
    A gateway endpoint costs nothing. Data and checkpoints that go through a NAT gateway cost per GB, and share its
    bandwidth.
    """
    if network.nat and not network.s3_gateway:
        yield Broken(
            path=network.at("s3_gateway"),
            message="data for S3 goes through the NAT gateway, which is slower and charged per GB",
            fix="add a gateway endpoint to S3 to the nodes' route tables",
        )


@rule(
    "HF213",
    title="A closed network has the VPC endpoints that nodes need",
    each=Network,
    source="awsome-distributed-ai, vpc_endpoints; SageMaker developer guide, training operator",
)
def endpoints_of_a_closed_network(network: Network, deployment: Deployment) -> Iterator[Broken]:
    """
    Without a way out, nodes reach AWS through interface endpoints only: Systems Manager and CloudWatch always; under
    EKS also the registry, STS, EC2 and pod identity, and SageMaker's API for the training operator.
    """
    if network.way_out:
        return
    eks = deployment.cluster.eks
    if eks is None and not network.interface_endpoints:
        return  # under Slurm what AWS's image does needs S3 alone; who asks for endpoints wants more
    expected = set(limits("endpoints_of_a_closed_network")["slurm" if eks is None else "eks"])
    plane = None if eks is None else eks.control_plane
    if plane is not None and any(addon.name.endswith("hyperpod-training-operator") for addon in plane.addons):
        expected.add("sagemaker.api")
    missing = sorted(expected - network.interface_endpoints)
    if missing:
        yield refused(
            network.at("interface_endpoints"),
            f"no endpoint for {', '.join(missing)}",
            allowed="a closed network with an interface endpoint for each",
            fix="add them, or a NAT gateway",
        )


@rule(
    "HF220",
    title="An accounting database has subnets in two zones",
    each=EnvironmentFile,
    source="RDS user guide, 'Working with a DB instance in a VPC': a subnet group covers two zones",
)
def accounting_in_two_zones(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """The database that `slurm.accounting: {create: true}` makes wants subnets in two zones, as RDS does for all."""
    if file.accounting_created and not _has_second_zone(file, deployment.cluster.vpc):
        yield refused(
            file.at("control_plane_zone" if file.new_network else "control_plane_subnets"),
            "no second zone for the database that slurm.accounting asks for",
            allowed="subnets in two zones",
            fix="name a second zone" if file.new_network else "add two subnets to control_plane_subnet_ids",
        )


@rule(
    "HF248",
    title="Zones of groups are zones of the network",
    each=EnvironmentFile,
    source="EC2 user guide, 'Regions and Zones'; SageMaker API, OverrideVpcConfig",
)
def zones_of_groups(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    A network made here has a subnet for nodes in `network.availability_zone` and in each of
    `network.additional_availability_zones`; a group names one of these zones. In an existing network the subnets of
    `override_vpc` decide.
    """
    place, zones = file.at("further_zones"), [zone for zone in (file.first_zone, *file.further_zones) if zone]
    if file.further_zones and (not file.new_network or file.first_zone is None):
        yield refused(
            place,
            "further zones",
            allowed="none beside network.existing or availability_zone_id",
            fix="give groups an override_vpc"
            if file.existing_network
            else "name the first zone with availability_zone",
        )
    for zone in file.further_zones:
        if zones.count(zone) > 1 or (deployment.region and not zone.startswith(deployment.region)):
            yield refused(
                place, zone, allowed=f"other zones of {deployment.region}, each once", fix="name another zone"
            )
    for path, zone in file.group_zones.items():
        if zone not in zones:
            yield refused(
                path,
                zone,
                allowed=", ".join(zones) or "none without network.availability_zone",
                fix="give the group an override_vpc"
                if file.existing_network
                else "add it to network.additional_availability_zones",
            )
    for path in file.placed_twice:
        yield refused(path, "a zone, and override_vpc", allowed="one of them", fix="leave the zone out")


def _has_second_zone(file: EnvironmentFile, nodes: VpcConfig | None) -> bool:
    if not file.new_network:
        return file.control_plane_subnets >= 2
    return file.control_plane_zone not in (None, *zones_of(() if nodes is None else nodes.subnets))


def all_vpcs(cluster: Cluster) -> list[VpcConfig]:
    each = [cluster.vpc, *(group.override_vpc for group in groups_of(cluster))]
    return list(dict.fromkeys(vpc for vpc in each if vpc is not None))


def all_subnets(vpcs: Iterable[VpcConfig]) -> list[Subnet]:
    return list(dict.fromkeys(subnet for vpc in vpcs for subnet in vpc.subnets))


def all_security_groups(vpcs: Iterable[VpcConfig]) -> list[SecurityGroup]:
    return list(dict.fromkeys(group for vpc in vpcs for group in vpc.security_groups))
