"""The network of a cluster: one zone, one private subnet for the nodes, and the security group that EFA needs."""

import ipaddress
from collections.abc import Sequence
from typing import Literal

from aws_cdk import Acknowledgment, CfnResource, RemovalPolicy, Validations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from holdfast.catalog import addresses_needed, prefix_length_for
from holdfast_constructs._instance_group import InstanceGroup

NAT_SUBNET_PREFIX = 28


class HyperPodNetwork(Construct):
    """
    A VPC in one availability zone, because EFA does not cross zones.

    The nodes' subnet is the first half of the block, whatever the groups: a subnet cannot change its size, and one that
    followed the number of nodes would replace itself, and the cluster with it, when a group grows.
    """

    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    """The private subnet of nodes and file system."""
    security_group: ec2.ISecurityGroup
    """All traffic among its members, in and out, by reference to itself: EFA's addresses match no CIDR rule."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cidr: str,
        availability_zone: str,
        instance_groups: Sequence[InstanceGroup],
        egress: Literal["nat", "none"] = "nat",
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
    ) -> None:
        """
        Define a network.

        Args:
            cidr: IPv4 block of the VPC.
            availability_zone: The zone of the nodes' subnet. The CDK compares it with ``Stack.availability_zones`` and
                looks those up in the account, unless the stack overrides them.
            instance_groups: What the subnet must have room for. ValueError when it has not.
            egress: Default: "nat", nodes reach the internet through a NAT gateway. "none": they do not.
            removal_policy: Default: DESTROY. RETAIN keeps what a retained file system stands on: VPC, nodes' subnet and
                security group. Without them the stack of such a file system cannot be deleted.
        """
        super().__init__(scope, construct_id)
        nat = egress == "nat"
        self.vpc = ec2.Vpc(
            self,
            "Resource",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=[availability_zone],
            subnet_configuration=_subnets(cidr, instance_groups, nat=nat),
            nat_gateways=1 if nat else 0,
            restrict_default_security_group=False,
            gateway_endpoints={"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)},
        )
        one_zone = Acknowledgment(
            id="CloudFormation-Validate::W3010", reason="the zone is chosen, EFA does not cross zones"
        )
        Validations.of(self).acknowledge(one_zone)
        self.subnet = (self.vpc.private_subnets if nat else self.vpc.isolated_subnets)[0]
        self.security_group = self._security_group(internet=nat)
        for construct in (
            self.vpc.node.default_child,
            self.subnet.node.default_child,
            *self.security_group.node.find_all(),
        ):
            if isinstance(construct, CfnResource):
                construct.apply_removal_policy(removal_policy)

    def _security_group(self, *, internet: bool) -> ec2.ISecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=self.vpc,
            description="HyperPod nodes and their file system",
            # With True the CDK drops the rule to itself, and EFA fails: 0.0.0.0/0 does not cover EFA's addresses.
            allow_all_outbound=False,
        )
        # All traffic covers Lustre's ports 988 and 1018-1023 too.
        group.connections.allow_internally(ec2.Port.all_traffic(), "EFA and Lustre among members")
        # Written into the group itself: without a rule of its own there, EC2 keeps its default rule to anywhere, which
        # a rule added from outside neither removes nor may repeat.
        anywhere = ("0.0.0.0/0", "AWS APIs and package repositories, through the NAT gateway")
        inside = (self.vpc.vpc_cidr_block, "addresses of this network")
        cidr_ip, description = anywhere if internet else inside
        rule = {"IpProtocol": "-1", "CidrIp": cidr_ip, "Description": description}
        resource = group.node.default_child
        assert isinstance(resource, ec2.CfnSecurityGroup)
        resource.add_property_override("SecurityGroupEgress", [rule])
        return group


def _subnets(cidr: str, groups: Sequence[InstanceGroup], *, nat: bool) -> list[ec2.SubnetConfiguration]:
    prefix = ipaddress.IPv4Network(cidr).prefixlen + 1
    needed = addresses_needed((group.instance_type, group.instance_count) for group in groups)
    if prefix_length_for(needed) < prefix:
        raise ValueError(
            f"the instance groups need {needed} addresses, and half of cidr {cidr} has {2 ** (32 - prefix)}; "
            f"give a block of /{prefix_length_for(needed) - 1} or larger"
        )
    kind = ec2.SubnetType.PRIVATE_WITH_EGRESS if nat else ec2.SubnetType.PRIVATE_ISOLATED
    nodes = ec2.SubnetConfiguration(name="Nodes", subnet_type=kind, cidr_mask=prefix)
    public = ec2.SubnetConfiguration(
        name="Nat", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=NAT_SUBNET_PREFIX, map_public_ip_on_launch=False
    )
    return [nodes, public] if nat else [nodes]
