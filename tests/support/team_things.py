"""What a team has before Holdfast comes: a network, file systems, roles, a bucket of scripts, an EKS cluster."""

import json
from typing import Any

from embedded_stack import Cloud

from holdfast.catalog.facts import EKS_ACTIONS, VPC_ACTIONS

ROLES = ("HyperPodNodes", "HyperPodHead", "HyperPodClusterRole")
BUCKET = "sagemaker-team-scripts"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"},
        {"Effect": "Allow", "Principal": {"Service": "hyperpod.sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}
NODES_POLICY = "arn:aws:iam::aws:policy/AmazonSageMakerClusterInstanceRolePolicy"
IN_A_VPC = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": sorted({*VPC_ACTIONS, *EKS_ACTIONS, "ec2:CreateTags", "eks-auth:AssumeRoleForPodIdentity"}),
            "Resource": "*",
        }
    ],
}
"""SageMaker developer guide, "AWS Identity and Access Management for SageMaker HyperPod": what roles need beside."""


def network(ec2: Any, block: str) -> str:
    """The id of a VPC whose subnets have a way out; nodes have no public address, so that it is a NAT gateway."""
    vpc: str = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
    internet = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=vpc)
    public = block.replace(".0.0/16", ".255.0/24")
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=public, AvailabilityZone="us-west-2a")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    here = [{"Name": "vpc-id", "Values": [vpc]}]
    table = ec2.describe_route_tables(Filters=here)["RouteTables"][0]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway)
    return vpc


def node_role(iam: Any, name: str, *, path: str = "/") -> str:
    """The ARN of a role that nodes in a VPC can have."""
    document = json.dumps(TRUST)
    arn: str = iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    iam.attach_role_policy(RoleName=name, PolicyArn=NODES_POLICY)
    iam.put_role_policy(RoleName=name, PolicyName="vpc", PolicyDocument=json.dumps(IN_A_VPC))
    return arn


class TeamThings:
    """Ids and names of what was made."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.vpc = network(cloud.client("ec2"), "10.3.0.0/16")
        self.subnets = [self._subnet(f"10.3.{number}.0/24", zone) for number, zone in enumerate("ab")]
        self.group = self._group("nodes")
        self.other_group = self._group("storage")
        self.roles = {name: node_role(cloud.client("iam"), name) for name in ROLES}
        self.lustre = self._lustre()
        self.home = self._home()
        s3 = cloud.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        for name in ("on_create.sh", "extend.sh"):
            s3.put_object(Bucket=BUCKET, Key=f"base/{name}", Body=b"#!/bin/bash\\nexit 0\\n")

    def eks(self, name: str = "platform") -> str:
        """The ARN of an EKS cluster."""
        eks = self._cloud.client("eks")
        made = eks.create_cluster(
            name=name,
            version="1.34",
            roleArn=self.roles["HyperPodClusterRole"],
            resourcesVpcConfig={"subnetIds": self.subnets, "securityGroupIds": [self.group]},
            accessConfig={"authenticationMode": "API"},
        )
        eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        return str(made["cluster"]["arn"])

    def _subnet(self, cidr: str, zone: str) -> str:
        ec2 = self._cloud.client("ec2")
        subnet = ec2.create_subnet(VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=f"us-west-2{zone}")["Subnet"]
        return str(subnet["SubnetId"])

    def _group(self, name: str) -> str:
        ec2 = self._cloud.client("ec2")
        group: str = ec2.create_security_group(GroupName=name, Description=name, VpcId=self.vpc)["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
        return group

    def _lustre(self) -> dict[str, Any]:
        made: dict[str, Any] = self._cloud.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=self.subnets[:1],
            SecurityGroupIds=[self.group],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        )["FileSystem"]
        return made

    def _home(self) -> dict[str, Any]:
        made: dict[str, Any] = self._cloud.client("fsx").create_file_system(
            FileSystemType="OPENZFS",
            StorageCapacity=64,
            SubnetIds=self.subnets[:1],
            SecurityGroupIds=[self.group],
            OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_HA_2", "ThroughputCapacity": 160},
        )["FileSystem"]
        return made
