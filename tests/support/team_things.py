"""What a team has before Holdfast comes: a network, file systems, roles, a bucket of scripts, an EKS cluster."""

import json
from typing import Any

from embedded_stack import Cloud

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


class TeamThings:
    """Ids and names of what was made."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        ec2 = cloud.client("ec2")
        self.vpc = ec2.create_vpc(CidrBlock="10.3.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [self._subnet(f"10.3.{number}.0/24", zone) for number, zone in enumerate("ab")]
        self.group = self._group("nodes")
        self.other_group = self._group("storage")
        self.roles = {name: self._role(name) for name in ROLES}
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

    def _role(self, name: str) -> str:
        iam = self._cloud.client("iam")
        arn: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
        iam.attach_role_policy(RoleName=name, PolicyArn=NODES_POLICY)
        return arn

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
