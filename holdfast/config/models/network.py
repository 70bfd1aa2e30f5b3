from typing import Annotated, Literal

from holdfast.catalog import CLUSTER, Property
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model


class ExistingNetwork(Model):
    """A network that is there already. Nothing in it is changed; its routes and endpoints are yours to keep right."""

    vpc_id: aws.VpcId | None = None
    """The VPC: required where something has to be made in it, an EKS cluster, a database or endpoints.
    Default: unknown"""
    vpc_cidr: fields.Cidr | None = None
    """Its IPv4 block. Default: unknown"""
    subnet_id: aws.SubnetId
    """The private subnet of the nodes, in network.availability_zone."""
    additional_subnet_ids: Annotated[aws.AdditionalSubnetIds, Property(CLUSTER, "VpcConfig.Subnets")] = ()
    """Further subnets that the cluster may put nodes into; EFA does not cross their zones. They cannot be changed
    later. Default: none"""
    subnet_cidr: fields.Cidr | None = None
    """IPv4 block of that subnet; whether the nodes fit into it can be judged only when it is known. Default: unknown"""
    security_group_id: aws.SecurityGroupId
    """The group of nodes and file systems: all traffic from and to itself has to be allowed."""
    additional_security_group_ids: Annotated[
        aws.AdditionalSecurityGroupIds, Property(CLUSTER, "VpcConfig.SecurityGroupIds")
    ] = ()
    """Further groups of the nodes, such as that of a file system that is there already. They cannot be changed later.
    Default: none"""
    route_table_id: aws.RouteTableId | None = None
    """The subnet's route table, so that a gateway endpoint to S3 is made for it. Default: S3 is reached as it is"""
    control_plane_subnet_ids: aws.SubnetIds = ()
    """Private subnets in at least two zones for the network interfaces of EKS and for Slurm's accounting database:
    required with either. Default: none"""


class Network(Model):
    """The VPC and the subnets that the nodes live in, one for each zone; EFA does not cross availability zones."""

    cidr: fields.Cidr | None = None
    """IPv4 block of the VPC. Its first half is the nodes' subnet and must have room for the instance groups; neither
    can change its size later. Default: none, and network.existing names a VPC"""
    availability_zone: Annotated[aws.AvailabilityZone | None, Property("AWS::EC2::Subnet", "AvailabilityZone")] = None
    """Where nodes and file system are. It must be in the environment's region. Default: none,
    availability_zone_id or network.existing is given"""
    availability_zone_id: aws.AvailabilityZoneId | None = None
    """The same by the id of the zone, as capacity is offered: names of zones differ between accounts. Default: none,
    availability_zone or network.existing is given"""
    additional_availability_zones: aws.AdditionalZones = ()
    """Further zones with a private subnet for nodes, an eighth of cidr each, in a VPC made here. A group names its zone
    with availability_zone; the file system stays in network.availability_zone. Default: none"""
    control_plane_availability_zone: aws.AvailabilityZone | None = None
    """A second zone for what requires two, the network interfaces of EKS and Slurm's accounting database: required with
    either in a VPC made here. Default: none"""
    control_plane_availability_zone_id: aws.AvailabilityZoneId | None = None
    """The same by the id of the zone, required where the first zone is given by its id. Default: none"""
    egress: Literal["nat", "none"] = "nat"
    """How nodes reach the internet: through a NAT gateway, or not at all; then the AWS services that they need get
    interface endpoints. S3 always goes through a gateway endpoint. Default: nat"""
    flow_logs: bool = True
    """Whether the VPC's traffic is logged to CloudWatch Logs. Default: true"""
    existing: ExistingNetwork | None = None
    """A network to use instead of making one. Default: one is made of cidr"""
