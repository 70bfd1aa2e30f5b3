"""Network of a cluster: one zone, one private subnet for nodes, and the security group for EFA."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from aws_cdk import Acknowledgment, CfnResource, RemovalPolicy, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from holdfast.catalog import ENDPOINTS, Orchestrator, bounds
from holdfast_constructs.cdk import has_token
from holdfast_constructs.network.endpoints import HTTPS, InterfaceEndpoints
from holdfast_constructs.network.zone import Zone

SMALL_SUBNET_PREFIX = 28
MOST_FURTHER_ZONES = bounds("further_zones").most
Egress = Literal["nat", "none"]


class IHyperPodNetwork(IConstruct, Protocol):
    """Network of a cluster, owned or imported."""

    @property
    def vpc(self) -> ec2.IVpc:
        """Raises ValueError if imported without it."""
        ...

    subnet: ec2.ISubnet
    """The private subnet of nodes and file systems."""
    security_group: ec2.ISecurityGroup
    """All traffic among its members, in and out, by reference to itself: EFA's addresses match no CIDR rule."""
    subnets: Sequence[ec2.ISubnet]
    """All that the cluster may put nodes into: ``subnet`` and those beside it."""
    security_groups: Sequence[ec2.ISecurityGroup]
    """All that nodes are members of: ``security_group`` and those beside it."""
    control_plane_subnets: Sequence[ec2.ISubnet]
    """Small subnets in two zones, for services that require two: the control plane of EKS, a database. Empty when the
    network has one zone only."""
    closed: bool
    """Whether nodes have no way to the internet, and reach services of AWS through endpoints."""

    def add_interface_endpoint(self, service: str) -> None:
        """Let nodes reach a service of AWS, such as ``secretsmanager``; only needed in a closed network."""
        ...


class HyperPodNetwork(Construct):
    """
    VPC with nodes in one availability zone, because EFA does not cross zones; groups may be in further zones.

    The nodes' subnet is the first half of the block: a subnet cannot be resized, and one sized by the groups would be
    replaced, with the cluster, when a group grows. Rule HF209 judges whether the groups fit.
    """

    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    security_group: ec2.ISecurityGroup
    subnets: Sequence[ec2.ISubnet]
    security_groups: Sequence[ec2.ISecurityGroup]
    control_plane_subnets: Sequence[ec2.ISubnet]
    zone_subnets: Mapping[str, ec2.ISubnet]
    """Private subnets of further zones, by name, for groups with ``override_vpc``."""
    closed: bool

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cidr: str,
        availability_zone: str | None = None,
        orchestrator: Orchestrator = "slurm",
        second_availability_zone: str | None = None,
        availability_zone_id: str | None = None,
        second_availability_zone_id: str | None = None,
        additional_availability_zones: Sequence[str] = (),
        egress: Egress = "nat",
        flow_logs: logs.ILogGroup | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """
        Define a network.

        Args:
            cidr: IPv4 block of the VPC.
            availability_zone: Of the nodes' subnet, or ``availability_zone_id``. The CDK compares it with
                ``Stack.availability_zones``, which it looks up unless overridden.
            orchestrator: Default: "slurm". Nodes of "eks" need more endpoints in a closed network.
            second_availability_zone: Adds ``control_plane_subnets``, for EKS or a database.
            availability_zone_id: Such as ``use1-az4``, the same in all accounts.
            additional_availability_zones: Each adds one of ``zone_subnets``, an eighth of the block; at most two.
            egress: Default: "nat". "none": nodes reach AWS only through endpoints.
            flow_logs: Destination for accepted and rejected traffic. Default: none.
            removal_policy: Default: DESTROY. RETAIN_ON_UPDATE_OR_DELETE keeps VPC, subnets and security group, which a
                retained file system needs.
        """
        super().__init__(scope, construct_id)
        nat = egress == "nat"
        self.closed = not nat
        _check(cidr, availability_zone, availability_zone_id)
        first = Zone(name=availability_zone, id=availability_zone_id)
        second = Zone(name=second_availability_zone, id=second_availability_zone_id)
        self.vpc = ec2.Vpc(
            self,
            "Resource",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=[first.name or first.unnamed],
            subnet_configuration=_subnets(cidr, nat=nat),
            nat_gateways=1 if nat else 0,
            restrict_default_security_group=False,
            gateway_endpoints={"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)},
        )
        chosen = Acknowledgment(id="CloudFormation-Validate::W3010", reason="zones are chosen, EFA does not cross them")
        Validations.of(self).acknowledge(chosen)
        self.subnet = (self.vpc.private_subnets if nat else self.vpc.isolated_subnets)[0]
        zones = (first, second) if second.is_given else ()
        self.control_plane_subnets = self._control_plane_subnets(cidr, zones)
        for subnet in (*self.vpc.private_subnets, *self.vpc.isolated_subnets, *self.vpc.public_subnets):
            first.apply(subnet)
        self.zone_subnets = self._zone_subnets(cidr, first, additional_availability_zones, nat=nat)
        self.security_group = self._security_group(cidr, egress)
        self.subnets, self.security_groups = (self.subnet,), (self.security_group,)
        if flow_logs is not None:
            destination = ec2.FlowLogDestination.to_cloud_watch_logs(flow_logs)
            _only_for_this_account(self.vpc.add_flow_log("FlowLogs", destination=destination))
        self._endpoints: InterfaceEndpoints | None = None
        if not nat:
            self._endpoints = InterfaceEndpoints(
                self, "Endpoints", vpc=self.vpc, subnet=self.subnet, nodes=self.security_group
            )
            for service in ENDPOINTS[orchestrator]:
                self._endpoints.add(service)
        self._apply(removal_policy)
        inside = self.vpc.node.find_all()
        attachments = [found for found in inside if isinstance(found, ec2.CfnVPCGatewayAttachment)]
        for address in inside:
            if isinstance(address, ec2.CfnEIP):
                # CloudFormation user guide, DependsOn: an address of a VPC waits for the attachment of its gateway.
                address.node.add_dependency(*attachments)

    @staticmethod
    def from_attributes(
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        vpc: ec2.IVpc | None = None,
        additional_subnets: Sequence[ec2.ISubnet] = (),
        additional_security_groups: Sequence[ec2.ISecurityGroup] = (),
        control_plane_subnets: Sequence[ec2.ISubnet] = (),
        s3_gateway_endpoint: bool = False,
        closed: bool = False,
    ) -> IHyperPodNetwork:
        """
        Refer to an external network; its owner maintains routes, rules and endpoints.

        Args:
            subnet: Private, with room for all nodes and file systems.
            security_group: Allows all traffic from and to itself, by reference.
            vpc: For resources made in it.
            additional_subnets: For more nodes; EFA does not cross zones.
            additional_security_groups: Of the nodes, such as that of a file system.
            s3_gateway_endpoint: Make one, in the subnet's route table. Default: False, S3 is reachable.
            closed: No way to the internet; the owner makes endpoints. Default: False.
        """
        imported = _Imported(scope, construct_id)
        imported.closed = closed
        imported.known_vpc, imported.subnet, imported.security_group = vpc, subnet, security_group
        imported.subnets = (subnet, *additional_subnets)
        imported.security_groups = (security_group, *additional_security_groups)
        imported.control_plane_subnets = tuple(control_plane_subnets)
        if s3_gateway_endpoint:
            ec2.GatewayVpcEndpoint(
                imported,
                "S3",
                vpc=imported.vpc,
                service=ec2.GatewayVpcEndpointAwsService.S3,
                subnets=[ec2.SubnetSelection(subnets=[subnet])],
            )
        return imported

    def add_interface_endpoint(self, service: str) -> None:
        if self._endpoints is not None:
            self._endpoints.add(service)

    def _control_plane_subnets(self, cidr: str, zones: Sequence[Zone]) -> Sequence[ec2.ISubnet]:
        """At the end of the block, which the VPC construct never uses."""
        last = ipaddress.IPv4Network(cidr).broadcast_address + 1
        size = 2 ** (32 - SMALL_SUBNET_PREFIX)
        return tuple(
            zone.apply(
                ec2.PrivateSubnet(
                    self,
                    f"ControlPlaneSubnet{index}",
                    vpc_id=self.vpc.vpc_id,
                    availability_zone=zone.name or zone.unnamed,
                    cidr_block=f"{last - index * size}/{SMALL_SUBNET_PREFIX}",
                    map_public_ip_on_launch=False,
                )
            )
            for index, zone in enumerate(zones, start=1)
        )

    def _zone_subnets(self, cidr: str, first: Zone, zones: Sequence[str], *, nat: bool) -> Mapping[str, ec2.ISubnet]:
        if len({first.name, *zones}) <= len(zones) or len(zones) > MOST_FURTHER_ZONES:
            raise ValueError(
                f"network: got additional_availability_zones {', '.join(zones)} beside {first.name}; allowed: at most "
                f"{MOST_FURTHER_ZONES}, each once"
            )
        second_half = list(ipaddress.IPv4Network(cidr).subnets())[1]
        blocks = list(second_half.subnets(prefixlen_diff=2))[1:]
        made = {}
        for index, (zone, block) in enumerate(zip(zones, blocks, strict=False), start=1):
            subnet = made[zone] = ec2.PrivateSubnet(
                self,
                f"ZoneSubnet{index}",
                vpc_id=self.vpc.vpc_id,
                availability_zone=zone,
                cidr_block=str(block),
                map_public_ip_on_launch=False,
            )
            if nat:
                gateway = self.vpc.public_subnets[0].node.find_child("NATGateway")
                assert isinstance(gateway, ec2.CfnNatGateway)
                subnet.add_default_nat_route(gateway.ref)
        if made:
            ec2.GatewayVpcEndpoint(
                self,
                "ZonesS3",
                vpc=self.vpc,
                service=ec2.GatewayVpcEndpointAwsService.S3,
                subnets=[ec2.SubnetSelection(subnets=[*made.values()])],
            )
        return made

    def _security_group(self, cidr: str, egress: Egress) -> ec2.ISecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self.vpc,
            description="HyperPod nodes and their file system",
            # With True the CDK drops the rule to itself, and EFA fails: 0.0.0.0/0 does not cover EFA's addresses.
            allow_all_outbound=False,
        )
        # All traffic covers Lustre's ports 988 and 1018-1023 and NFS' 2049 too.
        group.connections.allow_internally(ec2.Port.all_traffic(), "EFA and Lustre among members")
        resource = group.node.default_child
        assert isinstance(resource, ec2.CfnSecurityGroup)
        # Written into the group itself: without a rule of its own there, EC2 keeps its default rule to anywhere, which
        # a rule added from outside neither removes nor may repeat.
        resource.add_property_override("SecurityGroupEgress", _egress_rules(egress, cidr))
        return group

    def _apply(self, removal_policy: RemovalPolicy) -> None:
        for construct in (
            self.vpc.node.default_child,
            self.subnet.node.default_child,
            *(subnet.node.default_child for subnet in (*self.control_plane_subnets, *self.zone_subnets.values())),
            *self.security_group.node.find_all(),
        ):
            if isinstance(construct, CfnResource):
                construct.apply_removal_policy(removal_policy)


class _Imported(Construct):
    known_vpc: ec2.IVpc | None
    subnet: ec2.ISubnet
    security_group: ec2.ISecurityGroup
    subnets: Sequence[ec2.ISubnet]
    security_groups: Sequence[ec2.ISecurityGroup]
    control_plane_subnets: Sequence[ec2.ISubnet]
    closed: bool

    @property
    def vpc(self) -> ec2.IVpc:
        if self.known_vpc is None:
            raise ValueError(
                f"network {self.node.path}: got no VPC, and something has to be made in it; allowed: one with its VPC; "
                "give from_attributes the vpc"
            )
        return self.known_vpc

    def add_interface_endpoint(self, service: str) -> None:
        """Nothing to do: endpoints are the owner's."""


def _check(cidr: str, zone: str | None, zone_id: str | None) -> None:
    if has_token(cidr):
        raise ValueError(
            "network: got a cidr that is known only at deployment; allowed: a plain block, of which the subnets are cut"
        )
    if (zone is None) == (zone_id is None):
        raise ValueError(
            f"network: got availability_zone {zone!r} and availability_zone_id {zone_id!r}; allowed: exactly one"
        )


def _egress_rules(egress: Egress, vpc_cidr: str) -> list[dict[str, object]]:
    if egress == "nat":
        to_internet = "AWS APIs and package repositories, through the NAT gateway"
        return [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0", "Description": to_internet}]
    # The gateway endpoint of S3 leads to public addresses. No route leads to any other.
    s3 = {"IpProtocol": "tcp", "FromPort": HTTPS, "ToPort": HTTPS, "CidrIp": "0.0.0.0/0"}
    return [
        {"IpProtocol": "-1", "CidrIp": vpc_cidr, "Description": "addresses of this network"},
        {**s3, "Description": "S3, through its gateway endpoint"},
    ]


def _subnets(cidr: str, *, nat: bool) -> list[ec2.SubnetConfiguration]:
    prefix = ipaddress.IPv4Network(cidr).prefixlen + 1
    kind = ec2.SubnetType.PRIVATE_WITH_EGRESS if nat else ec2.SubnetType.PRIVATE_ISOLATED
    nodes = ec2.SubnetConfiguration(name="Nodes", subnet_type=kind, cidr_mask=prefix)
    public = ec2.SubnetConfiguration(
        name="Nat", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=SMALL_SUBNET_PREFIX, map_public_ip_on_launch=False
    )
    return [nodes, public] if nat else [nodes]


def _only_for_this_account(flow_log: ec2.FlowLog) -> None:
    """Restrict who the service acts for (VPC user guide, "IAM role for publishing flow logs to CloudWatch Logs")."""
    role = flow_log.node.find_child("IAMRole").node.default_child
    assert isinstance(role, CfnResource)
    stack = Stack.of(flow_log)
    flow_logs = stack.format_arn(service="ec2", resource="vpc-flow-log", resource_name="*")
    condition = {"StringEquals": {"aws:SourceAccount": stack.account}, "ArnLike": {"aws:SourceArn": flow_logs}}
    role.add_property_override("AssumeRolePolicyDocument.Statement.0.Condition", condition)
