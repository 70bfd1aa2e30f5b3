"""
How fast a HyperPod cluster is in service: from CreateCluster to every node idle, the real lifecycle scripts included.

    sudo python benchmarks/cluster.py            # 6 and 64 nodes, in extension mode
    sudo python benchmarks/cluster.py 6 --repeat 3
    sudo python benchmarks/cluster.py 6 --mode extension custom none aws-extensions aws-base-config

Each run starts a local cloud of its own (embedded AWS and control plane, as ``holdfast up`` does), makes network, role,
file system and lifecycle bundle through AWS APIs, and then measures the cluster alone. Mode "none" has no lifecycle
scripts, those beginning with "aws" run AWS's own, which are read from ../shared/cases/lifecycle where that is there.
"each" is the median of what single nodes took from their boot on to being in service. Exit status 1 when a limit is
missed.
"""

import argparse
import json
import socket
import statistics
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
from holdfast_common import kinds, parse_events

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT.parent / "shared" / "cases" / "lifecycle"
LIMITS_S = {6: 3.0, 64: 8.0}
"""Of extension mode."""
TIMEOUT_S = 300.0
POLL_S = 0.2
"""Each question costs the embedded AWS some of the time that is measured."""
MODES: dict[str, dict[str, str]] = {
    "extension": {"OnInitComplete": "on_init_complete.sh"},
    "custom": {"OnCreate": "on_create.sh"},
    "none": {},
    "aws-extensions": {"OnInitComplete": "run_extensions.sh"},
    "aws-base-config": {"OnCreate": "on_create.sh"},
}
REGION = "us-west-2"
BUCKET = "sagemaker-benchmark"
NAME = "benchmark"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
RIGHTS = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["ec2:*", "s3:*"], "Resource": "*"}]}


def aws_bundle(mode: str) -> Iterator[tuple[str, bytes]]:
    folder, sample, place = {
        "aws-extensions": ("extensions", "add-users/shared_users_sample.yaml", "add-users/shared_users.yaml"),
        "aws-base-config": ("slurm-base-config", "shared_users_sample.txt", "shared_users.txt"),
    }[mode]
    for path in (path for path in sorted((CASES / folder).rglob("*")) if path.is_file()):
        yield str(path.relative_to(CASES / folder)), path.read_bytes()
    yield place, (CASES / folder / sample).read_bytes()


def bundle(storage: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    mount = {"type": "lustre", "dns_name": storage["DnsName"], "mount_name": storage["MountName"], "mount_path": "/fsx"}
    mounts = [{"instance_group": group, **mount} for group in ("controller", "workers")]
    yield "mounts.json", json.dumps(mounts).encode()
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
    def __init__(self, cloud: LocalCloud, *, mode: str = "extension") -> None:
        self._mode, self._cloud = mode, cloud
        self.sagemaker = self.client("sagemaker")
        ec2, s3 = self.client("ec2"), self.client("s3")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/17")["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
        document = json.dumps(TRUST)
        iam = self.client("iam")
        self.role = iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=document)["Role"]["Arn"]
        iam.put_role_policy(RoleName="nodes", PolicyName="nodes", PolicyDocument=json.dumps(RIGHTS))
        tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
        names = [table["RouteTableId"] for table in tables]
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=names)
        among = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}]
        ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=among)
        ec2.authorize_security_group_egress(GroupId=self.group, IpPermissions=among)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.client("logs").create_log_group(logGroupName=f"/holdfast/{NAME}/events")
        self.storage = self._file_system()
        for name, content in aws_bundle(mode) if mode.startswith("aws") else bundle(self.storage):
            s3.put_object(Bucket=BUCKET, Key=f"lifecycle/{name}", Body=content)

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, **self._cloud.client_arguments())

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
        def group(name: str, instance_type: str, instances: int, **slurm: Any) -> dict[str, Any]:
            hook = MODES[self._mode]
            return {
                "InstanceGroupName": name,
                "InstanceType": instance_type,
                "InstanceCount": instances,
                "ExecutionRole": self.role,
                **({"LifeCycleConfig": {"SourceS3Uri": f"s3://{BUCKET}/lifecycle", **hook}} if hook else {}),
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
                sys.exit("\n".join([f"the cluster failed: {answer['FailureMessage']}", *self._cloud.node_failures()]))
            return bool(answer["ClusterStatus"] == "InService")

        wait_until(in_service)


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"not within {TIMEOUT_S:g} s")
        time.sleep(POLL_S)


def idle_nodes(fleet: Fleet) -> int:
    controller = next(node for node in fleet.nodes() if node.spec.address.endswith(".10"))
    answer = controller.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], timeout_s=10.0)
    return len(set(answer.stdout.split()))


def seconds_per_node(cloud: LocalCloud) -> float:
    """Median over the nodes, as the control plane reports them."""
    lines = (cloud.home / "log" / "hyperpod.log").read_text().splitlines()
    events = parse_events(line[line.index("{") :] for line in lines if "{" in line).events
    return statistics.median(event.duration_s or 0.0 for event in events if event.kind == kinds.NODE_IN_SERVICE)


def measure(count: int, *, mode: str) -> tuple[float, float, float]:
    """Seconds until all nodes are idle, of the median node, and of the deletion."""
    with tempfile.TemporaryDirectory(prefix="holdfast-cluster-") as directory:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        cloud = LocalCloud(home=Path(directory).resolve() / "home", port=port)
        try:
            cloud.start_aws()
            cloud.start_hyperpod(region=REGION)
            account = Account(cloud, mode=mode)
            start = time.monotonic()
            account.create_cluster(count=count)
            wait_until(lambda: idle_nodes(Fleet(home=cloud.home)) == count - 1)
            idle_s = time.monotonic() - start
            each_s = seconds_per_node(cloud)
        finally:
            down = time.monotonic()
            cloud.remove()
        return idle_s, each_s, time.monotonic() - down


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds from CreateCluster to every node idle.")
    parser.add_argument("nodes", nargs="*", type=int, default=[6, 64], help="sizes, controller included")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=["extension"], help="who makes the nodes ready")
    given = parser.parse_args()
    if any(mode.startswith("aws") for mode in given.mode) and not CASES.is_dir():
        sys.exit(f"AWS's scripts are not in {CASES}")
    if problems := Fleet.check_host():
        sys.exit("; ".join(problems))
    table = Table("mode", "nodes", "idle s", "limit s", "ratio", "each s", "down s")
    missed = False
    for mode, count in ((mode, count) for mode in given.mode for count in given.nodes for _ in range(given.repeat)):
        idle_s, each_s, down_s = measure(count, mode=mode)
        limit = LIMITS_S.get(count, TIMEOUT_S) if mode == "extension" else TIMEOUT_S
        missed = missed or idle_s > limit
        figures = [f"{idle_s:.2f}", f"{limit:g}", f"{idle_s / limit:.2f}", f"{each_s:.2f}", f"{down_s:.2f}"]
        table.add_row(mode, str(count), *figures)
    Console().print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
