"""An embedded AWS with a control plane and real nodes, and what tests of the local HyperPod do with them."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from aws_nodes import PYTHONS
from footing import ready_network, service_role
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.nodes import Fleet, Node

BUCKET, REGION = "sagemaker-lab", "us-west-2"


def ok(node: Node, *argv: str, user: str | None = None, timeout_s: float = 20) -> str:
    """What a program of the node prints; it has to succeed."""
    done = node.run(argv, timeout_s=timeout_s, user=user)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()


class HyperPodLab:
    """A network, a role, a bucket, file systems of Lustre and OpenZFS; clusters are made by tests."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.aws = serve(home=home, port=0)
        self.fleet = Fleet(home=home)
        self.sagemaker, self.s3, self.logs = (self.client(name) for name in ("sagemaker", "s3", "logs"))
        ec2, fsx = self.client("ec2"), self.client("fsx")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"][
                "SubnetId"
            ]
            for number, zone in enumerate("ab")
        ]
        security_group = ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        self.network = {"SecurityGroupIds": [security_group], "Subnets": self.subnets[:1]}
        self.role = service_role(self.client("iam"), "lab")
        ready_network(ec2, vpc=vpc, group=security_group)
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        file_system = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=self.subnets[:1],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )["FileSystem"]
        self.lustre = {
            "FsxLustreConfig": {
                "DnsName": file_system["DNSName"],
                "MountName": file_system["LustreConfiguration"]["MountName"],
                "MountPath": "/fsx",
            }
        }
        open_zfs = fsx.create_file_system(
            FileSystemType="OPENZFS",
            StorageCapacity=64,
            SubnetIds=self.subnets[:1],
            OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64},
        )["FileSystem"]
        self.open_zfs = {"FsxOpenZfsConfig": {"DnsName": open_zfs["DNSName"]}}
        self.plane = ControlPlane(home=home, endpoint=self.aws.endpoint, region=REGION)
        self.thread = threading.Thread(target=self.plane.run)
        os.environ.update(PYTHONS)
        self.thread.start()

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, **self.aws.client_arguments)

    def stop(self) -> None:
        self.plane.stop()
        self.thread.join(20)
        self.aws.stop()
        Fleet(home=self.home).close()
        assert not self.thread.is_alive()

    def scripts(self, prefix: str, **files: str) -> str:
        """Put scripts under a prefix, ``__`` for a slash and ``_sh`` for the ending; returns the URI."""
        for name, text in files.items():
            key = name.replace("__", "/").replace("_sh", ".sh")
            self.s3.put_object(Bucket=BUCKET, Key=f"{prefix}/{key}", Body=text.encode())
        return f"s3://{BUCKET}/{prefix}"

    def group(self, name: str, *, count: int = 1, lifecycle: dict[str, str] | None = None, **slurm: Any) -> Any:
        """An instance group with the file system; without Slurm's settings also without the file system."""
        more = {"SlurmConfig": slurm, "InstanceStorageConfigs": [self.lustre]} if slurm else {}
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.c5.xlarge",
            "InstanceCount": count,
            "ExecutionRole": self.role,
            **({"LifeCycleConfig": lifecycle} if lifecycle else {}),
            **more,
        }

    def create(self, name: str, groups: list[Any], **more: Any) -> dict[str, Any]:
        """The cluster, once it is in service or has failed."""
        orchestrator = {"Orchestrator": {"Slurm": {}}, **more}
        self.sagemaker.create_cluster(ClusterName=name, InstanceGroups=groups, VpcConfig=self.network, **orchestrator)
        return self.settled(name)

    def described(self, name: str) -> dict[str, Any]:
        return self.sagemaker.describe_cluster(ClusterName=name)

    def settled(self, name: str) -> dict[str, Any]:
        return eventually(
            lambda: self.described(name) if self.described(name)["ClusterStatus"] in ("InService", "Failed") else None
        )

    def delete(self, name: str) -> None:
        self.sagemaker.delete_cluster(ClusterName=name)
        eventually(lambda: not self.sagemaker.list_clusters(NameContains=name)["ClusterSummaries"])

    def instances(self, name: str, group: str = "") -> dict[str, str]:
        """Instance id to status."""
        found = self.sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        return {
            one["InstanceId"]: one["InstanceStatus"]["Status"]
            for one in found
            if group in ("", one["InstanceGroupName"])
        }

    def node(self, cluster: str, group: str) -> Node:
        """The first node of a group."""
        return self.fleet.node(next(iter(self.instances(cluster, group))))

    def log_group(self, cluster: str) -> str:
        return f"/aws/sagemaker/Clusters/{cluster}/{self.described(cluster)['ClusterArn'].rpartition('/')[2]}"

    def lifecycle_log(self, cluster: str, group: str, instance_id: str) -> list[str]:
        """What CloudWatch has of one instance's lifecycle; empty where there is no stream."""
        stream = f"LifecycleConfig/{group}/{instance_id}"
        try:
            found = self.logs.get_log_events(
                logGroupName=self.log_group(cluster), logStreamName=stream, startFromHead=True
            )
        except self.logs.exceptions.ResourceNotFoundException:
            return []
        return [event["message"] for event in found["events"]]


@contextmanager
def hyperpod_lab(home: Path) -> Iterator[HyperPodLab]:
    """A lab that leaves nothing behind."""
    made: HyperPodLab | None = None
    try:
        made = HyperPodLab(home)
        yield made
    finally:
        if made is not None:
            made.stop()
        else:
            Fleet(home=home).close()
