"""An embedded AWS and a local HyperPod in this process, with one Slurm cluster and a file system at /fsx."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import boto3
from footing import ready_network, service_role
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.hyperpod.slurm import SLURM_CONF
from holdfast.localcloud.nodes import Fleet, Node


def controller_node(fleet: Fleet) -> Node:
    """The node that Slurm's own configuration names as its controller."""
    (found,) = (
        node
        for node in fleet.nodes()
        if node.alive()
        and (conf := node.inside(SLURM_CONF)).exists()
        and f"SlurmctldHost={node.spec.hostname}(" in conf.read_bytes().decode()
    )
    return found


class SlurmLab:
    """One cluster, lab: a controller and two workers."""

    def __init__(self, home: Path) -> None:
        self.aws = serve(home=home, port=0)
        self.fleet = Fleet(home=home)
        self.store = ImageStore(home=home)
        self.plane = ControlPlane(home=home, endpoint=self.aws.endpoint, region="us-west-2")
        self.thread = threading.Thread(target=self.plane.run)
        self.thread.start()
        sagemaker, ec2, iam = (self.client(name) for name in ("sagemaker", "ec2", "iam"))
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/20")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        role = service_role(iam, "lab")
        ready_network(ec2, vpc=vpc, group=group)
        self.client("logs").create_log_group(logGroupName="/holdfast/lab/events")
        file_system = self.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[subnet],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )["FileSystem"]
        lustre = {
            "DnsName": file_system["DNSName"],
            "MountName": file_system["LustreConfiguration"]["MountName"],
            "MountPath": "/fsx",
        }
        groups = [
            {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "InstanceCount": count, "ExecutionRole": role}
            | {"SlurmConfig": slurm, "InstanceStorageConfigs": [{"FsxLustreConfig": lustre}]}
            for name, count, slurm in [
                ("controller", 1, {"NodeType": "Controller"}),
                ("workers", 2, {"NodeType": "Compute", "PartitionNames": ["dev"]}),
            ]
        ]
        sagemaker.create_cluster(
            ClusterName="lab",
            InstanceGroups=groups,
            VpcConfig={"SecurityGroupIds": [group], "Subnets": [subnet]},
            Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
        )
        states = ("InService", "Failed")
        described = eventually(
            lambda: (
                answer if (answer := sagemaker.describe_cluster(ClusterName="lab"))["ClusterStatus"] in states else None
            )
        )
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        self.controller = controller_node(self.fleet)
        self.workers = [node for node in self.fleet.nodes() if node.pid != self.controller.pid]

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name="us-west-2",
            **self.aws.client_arguments,
        )

    def run(
        self, *argv: str, cwd: str = "/tmp", env: dict[str, str] | None = None, timeout_s: float = 60
    ) -> "subprocess.CompletedProcess[str]":
        """A command of a user's on the controller."""
        return self.controller.run(argv, user="ubuntu", cwd=cwd, env=env, timeout_s=timeout_s)

    def close(self) -> None:
        self.plane.stop()
        self.thread.join(20)
        self.fleet.close()
        self.aws.stop()
