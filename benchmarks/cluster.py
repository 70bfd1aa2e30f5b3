"""
How fast a HyperPod cluster is in service: from CreateCluster to every node idle, the real lifecycle scripts included.

    sudo python benchmarks/cluster.py            # 6 and 64 nodes
    sudo python benchmarks/cluster.py 6 --repeat 3

Each run starts a local cloud of its own (embedded AWS and control plane, as ``holdfast up`` does), makes network, role,
file system and lifecycle bundle through AWS APIs, and then measures the cluster alone. ``benchmarks/boot.py`` measures
the same without lifecycle scripts and without AWS. Exit status 1 when a limit is missed.
"""

import argparse
import json
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from rich.console import Console
from rich.table import Table

from holdfast.localcloud import LocalCloud
from holdfast.localcloud.nodes import Fleet

ROOT = Path(__file__).resolve().parents[1]
LIMITS_S = {6: 3.0, 64: 8.0}
TIMEOUT_S = 120.0
REGION = "us-west-2"
BUCKET = "sagemaker-benchmark"
NAME = "benchmark"
TRUST = {"Version": "2012-10-17", "Statement": []}


def bundle() -> Iterator[tuple[str, bytes]]:
    """The lifecycle scripts as the construct delivers them: (name, content)."""
    for script in ("on_create.sh", "on_init_complete.sh"):
        yield script, (ROOT / "lifecycle" / script).read_bytes()
    for folder in (ROOT / "lifecycle/holdfast_lifecycle", ROOT / "containers/common/holdfast_common"):
        for path in sorted(folder.rglob("*.py")):
            yield str(path.relative_to(folder.parent)), path.read_bytes()
    settings = {
        "cluster_name": NAME,
        "users": [{"name": "trainer", "uid": 2000}],
        "fsx_mount_path": "/fsx",
        "events_path": "/var/log/holdfast/events.jsonl",
    }
    yield "config.json", json.dumps(settings).encode()


class Account:
    """What a cluster stands on, in the embedded AWS."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._endpoint = cloud.endpoint
        self.sagemaker = self.client("sagemaker")
        ec2, s3 = self.client("ec2"), self.client("s3")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/17")["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
        document = json.dumps(TRUST)
        self.role = self.client("iam").create_role(RoleName="nodes", AssumeRolePolicyDocument=document)["Role"]["Arn"]
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        for name, content in bundle():
            s3.put_object(Bucket=BUCKET, Key=f"lifecycle/{name}", Body=content)
        self.client("logs").create_log_group(logGroupName=f"/holdfast/{NAME}/events")
        self.storage = self._file_system()

    def client(self, service: str) -> Any:
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
        return boto3.client(service, region_name=REGION, endpoint_url=self._endpoint, **keys)

    def _file_system(self) -> dict[str, str]:
        fsx = self.client("fsx")
        made = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[self.subnet],
            SecurityGroupIds=[self.group],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )["FileSystem"]
        wait_until(lambda: fsx.describe_file_systems()["FileSystems"][0]["Lifecycle"] == "AVAILABLE")
        mount_name = made["LustreConfiguration"]["MountName"]
        return {"DnsName": made["DNSName"], "MountName": mount_name, "MountPath": "/fsx"}

    def create_cluster(self, *, count: int) -> None:
        """A controller and ``count`` - 1 workers; returns when the cluster is in service."""

        def group(name: str, instance_type: str, instances: int, **slurm: Any) -> dict[str, Any]:
            return {
                "InstanceGroupName": name,
                "InstanceType": instance_type,
                "InstanceCount": instances,
                "ExecutionRole": self.role,
                "LifeCycleConfig": {"SourceS3Uri": f"s3://{BUCKET}/lifecycle", "OnInitComplete": "on_init_complete.sh"},
                "InstanceStorageConfigs": [{"FsxLustreConfig": self.storage}],
                "SlurmConfig": slurm,
            }

        self.sagemaker.create_cluster(
            ClusterName=NAME,
            InstanceGroups=[
                group("controller", "ml.m5.xlarge", 1, NodeType="Controller"),
                group("workers", "ml.p5.48xlarge", count - 1, NodeType="Compute", PartitionNames=["dev"]),
            ],
            VpcConfig={"Subnets": [self.subnet], "SecurityGroupIds": [self.group]},
            Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
        )

        def in_service() -> bool:
            answer = self.sagemaker.describe_cluster(ClusterName=NAME)
            if answer["ClusterStatus"] == "Failed":
                sys.exit(f"the cluster failed: {answer['FailureMessage']}")
            return bool(answer["ClusterStatus"] == "InService")

        wait_until(in_service)


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"not within {TIMEOUT_S:g} s")
        time.sleep(0.05)


def idle_nodes(fleet: Fleet) -> int:
    """Compute nodes on which Slurm would start a job now, as the controller says."""
    controller = next(node for node in fleet.nodes() if node.spec.address.endswith(".10"))
    answer = controller.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], timeout_s=10.0)
    return len(set(answer.stdout.split()))


def measure(count: int) -> tuple[float, float]:
    """Seconds to in service with every node idle, and to take it all down."""
    with tempfile.TemporaryDirectory(prefix="holdfast-cluster-") as directory:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        cloud = LocalCloud(home=Path(directory).resolve() / "home", port=port)
        try:
            cloud.start_aws()
            cloud.start_hyperpod(region=REGION)
            account = Account(cloud)
            start = time.monotonic()
            account.create_cluster(count=count)
            wait_until(lambda: idle_nodes(Fleet(home=cloud.home)) == count - 1)
            idle_s = time.monotonic() - start
        finally:
            down = time.monotonic()
            cloud.remove()
        return idle_s, time.monotonic() - down


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds from CreateCluster to every node idle.")
    parser.add_argument("nodes", nargs="*", type=int, default=[6, 64], help="sizes, controller included")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size")
    given = parser.parse_args()
    if problems := Fleet.check_host():
        sys.exit("; ".join(problems))
    table = Table("nodes", "idle s", "limit s", "ratio", "down s")
    missed = False
    for count in (count for count in given.nodes for _ in range(given.repeat)):
        idle_s, down_s = measure(count)
        limit = LIMITS_S.get(count, TIMEOUT_S)
        missed = missed or idle_s > limit
        table.add_row(str(count), f"{idle_s:.2f}", f"{limit:g}", f"{idle_s / limit:.2f}", f"{down_s:.2f}")
    Console().print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
