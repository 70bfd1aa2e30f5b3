"""Whatever the files of a cluster name, made on an embedded AWS, and the files with the names that it has there."""

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from embedded_stack import Cloud
from team_things import network, node_role

ACCOUNT, REGION = "123456789012", "us-west-2"
SUBNET = re.compile(r"subnet-[0-9a-f]{17}")
GROUP = re.compile(r"sg-[0-9a-f]{17}")
FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,17}(?=\.fsx\.)")
ROLE = re.compile(r"arn:aws:iam::\d{12}:role(/[\w+=,.@/-]*?)([\w+=,.@-]+)(?=\")")
EKS = re.compile(r"arn:aws:eks:[a-z0-9-]+:\d{12}:cluster/([\w-]+)")
SCRIPT = re.compile(r"\"On(?:Create|InitComplete)\"\s*:\s*\"([^\"]+)\"")
BUCKET = re.compile(r"s3://([a-z0-9.-]+)/?([^\"]*)")
MOUNT_NAME = re.compile(r"(\"(?:MountName|fsx_mountname)\"\s*:\s*)\"[^\"]*\"")
REGIONS = re.compile(r"(?<=[.:])[a-z]{2}-[a-z]+-\d(?=[.:])")
ACCOUNTS = re.compile(r"(?<=:)\d{12}(?=:)")


class NamedThings:
    """What was made for one cluster."""

    def __init__(self, cloud: Cloud, *, block: int) -> None:
        self._cloud, self._block = cloud, block
        self._made: dict[str, str] = {}
        self._numbers = count()
        self._vpc = network(cloud.client("ec2"), f"10.{block}.0.0/16")
        self._here = self._subnet()

    def write(self, paths: list[Path]) -> None:
        """Make what the files name, and write the names that it has into them."""
        for path in paths:
            text = ACCOUNTS.sub(ACCOUNT, REGIONS.sub(REGION, path.read_text()))
            for pattern, make in ((SUBNET, self._subnet), (GROUP, self._group), (FILE_SYSTEM, self._lustre)):
                for name in sorted(set(pattern.findall(text))):
                    if name not in self._made:
                        self._made[name] = make()
                    text = text.replace(name, self._made[name])
            mount_name = self._made.get("mount name", "")
            text = MOUNT_NAME.sub(rf'\g<1>"{mount_name}"', text) if mount_name else text
            buckets = sorted({bucket for bucket, _ in BUCKET.findall(text)})
            for folder, name in sorted(set(ROLE.findall(text))):
                self._role(folder, name, buckets=buckets)
            for name in sorted(set(EKS.findall(text))):
                own = f"{name}-{self._block}"  # an EKS cluster has one HyperPod cluster
                text = text.replace(f"cluster/{name}", f"cluster/{own}")
                self._eks(own)
            for bucket, prefix in sorted(set(BUCKET.findall(text))):
                self._scripts(bucket, prefix, names=sorted(set(SCRIPT.findall(text))))
            path.write_text(text)

    def _subnet(self, zone: str = "a") -> str:
        cidr = f"10.{self._block}.{next(self._numbers)}.0/24"
        made = self._cloud.client("ec2").create_subnet(
            VpcId=self._vpc, CidrBlock=cidr, AvailabilityZone=f"{REGION}{zone}"
        )
        return str(made["Subnet"]["SubnetId"])

    def _group(self) -> str:
        ec2, name = self._cloud.client("ec2"), f"group-{len(self._made)}"
        group: str = ec2.create_security_group(GroupName=name, Description=name, VpcId=self._vpc)["GroupId"]
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
        return group

    def _lustre(self) -> str:
        made = self._cloud.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[self._here],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        )["FileSystem"]
        self._made["mount name"] = made["LustreConfiguration"]["MountName"]
        return str(made["FileSystemId"])

    def _role(self, folder: str, name: str, *, buckets: Sequence[str] = ()) -> None:
        """A role whose team lets it read its scripts: the managed policy allows buckets of ``sagemaker-`` alone."""
        iam = self._cloud.client("iam")
        if name not in {role["RoleName"] for role in iam.list_roles()["Roles"]}:
            node_role(iam, name, path=folder or "/")
        if buckets:
            arns = [f"arn:aws:s3:::{bucket}{rest}" for bucket in buckets for rest in ("", "/*")]
            statement = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": arns}
            document = {"Version": "2012-10-17", "Statement": [statement]}
            iam.put_role_policy(RoleName=name, PolicyName="scripts", PolicyDocument=json.dumps(document))

    def _eks(self, name: str) -> None:
        eks: Any = self._cloud.client("eks")
        if name in eks.list_clusters()["clusters"]:
            return
        self._role("/", "platform-eks")
        eks.create_cluster(
            name=name,
            version="1.34",
            roleArn=f"arn:aws:iam::{ACCOUNT}:role/platform-eks",
            resourcesVpcConfig={"subnetIds": [self._here, self._subnet("b")]},
            accessConfig={"authenticationMode": "API"},
        )
        eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    def _scripts(self, bucket: str, prefix: str, *, names: list[str]) -> None:
        s3: Any = self._cloud.client("s3")
        if bucket not in {each["Name"] for each in s3.list_buckets()["Buckets"]}:
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        for name in names:
            key = "/".join(filter(None, [prefix.strip("/"), name]))
            s3.put_object(Bucket=bucket, Key=key, Body=b"#!/bin/bash\nexit 0\n")
