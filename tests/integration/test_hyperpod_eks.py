"""A cluster on EKS with real nodes: they boot and run their lifecycle scripts, and no Slurm is formed."""

import threading
from pathlib import Path

import boto3
import botocore.session
import pytest
from footing import ready_network, service_role
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.nodes import Fleet

pytestmark = [pytest.mark.e2e, pytest.mark.root]

MODELS = Path(__file__).parents[2] / "holdfast/localcloud/aws/host/models"
ON_CREATE = b"#!/bin/bash\nset -eu\n! command -v kubelet\ntouch /etc/created\n"
BROKEN = b"#!/bin/bash\nexit 3\n"


class Lab:
    """An embedded AWS with an EKS cluster, and a control plane."""

    def __init__(self, home):
        self.home, self.aws = home, serve(home=home)
        self.fleet = Fleet(home=home)
        self.plane = ControlPlane(home=home, endpoint=self.aws.endpoint, region="us-west-2")
        self.thread = threading.Thread(target=self.plane.run)
        self.thread.start()
        self.sagemaker = self.client("sagemaker")
        self._network()

    def client(self, service):
        return boto3.client(service, region_name="us-west-2", **self.aws.client_arguments)

    def stop(self):
        self.plane.stop()
        self.thread.join(20)
        self.aws.stop()
        Fleet(home=self.home).close()

    def _network(self):
        ec2, eks, s3 = (self.client(name) for name in ("ec2", "eks", "s3"))
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"us-west-2{zone}")[
                "Subnet"
            ]["SubnetId"]
            for number, zone in enumerate("ab")
        ]
        group = ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        self.role = service_role(self.client("iam"), "lab")
        ready_network(ec2, vpc=vpc, group=group)
        s3.create_bucket(Bucket="sagemaker-lab", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_object(Bucket="sagemaker-lab", Key="good/on_create.sh", Body=ON_CREATE)
        s3.put_object(Bucket="sagemaker-lab", Key="broken/on_create.sh", Body=BROKEN)
        eks.create_cluster(
            name="lab",
            roleArn=self.role,
            accessConfig={"authenticationMode": "API"},
            resourcesVpcConfig={"subnetIds": subnets},
        )
        eks.get_waiter("cluster_active").wait(name="lab", WaiterConfig={"Delay": 0.05})
        self.eks = eks.describe_cluster(name="lab")["cluster"]["arn"]
        self.vpc = {"SecurityGroupIds": [group], "Subnets": subnets[:1]}

    def create(self, name, *, script="good", **more):
        workers = {
            "InstanceGroupName": "workers",
            "InstanceRequirements": {"InstanceTypes": ["ml.p5.48xlarge", "ml.p5en.48xlarge"]},
            "InstanceCount": 2,
            "ExecutionRole": self.role,
            "LifeCycleConfig": {"SourceS3Uri": f"s3://sagemaker-lab/{script}", "OnCreate": "on_create.sh"},
        }
        self.sagemaker.create_cluster(
            ClusterName=name,
            InstanceGroups=[workers],
            VpcConfig=self.vpc,
            Orchestrator={"Eks": {"ClusterArn": self.eks}},
            **more,
        )

    def settled(self, name):
        return eventually(
            lambda: (
                self.status(name) not in ("Creating", "Updating", "SystemUpdating")
                and self.sagemaker.describe_cluster(ClusterName=name)
            )
        )

    def status(self, name):
        return self.sagemaker.describe_cluster(ClusterName=name)["ClusterStatus"]

    def nodes(self, name):
        found = self.sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        return {node["InstanceId"]: node["InstanceStatus"]["Status"] for node in found}

    def delete(self, name):
        self.sagemaker.delete_cluster(ClusterName=name)
        eventually(lambda: not self.sagemaker.list_clusters(NameContains=name)["ClusterSummaries"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = Lab(tmp_path_factory.mktemp("hyperpod"))
    yield made
    made.stop()


def test_nodes_boot_run_their_scripts_and_have_new_software_under_the_same_ids(lab):
    lab.create("lab")
    assert lab.settled("lab")["ClusterStatus"] == "InService"
    before = lab.nodes("lab")
    nodes = {node.spec.instance_id: node for node in lab.fleet.nodes()}

    assert set(before.values()) == {"Running"}
    for name in before:
        nodes[name].run(["sh", "-c", "test -e /etc/created && ! test -e /etc/munge/munge.key"], timeout_s=10)

    lab.sagemaker.update_cluster_software(
        ClusterName="lab", InstanceGroups=[{"InstanceGroupName": "workers", "ImageReleaseVersion": "2.0.0"}]
    )
    told = lab.settled("lab")
    after = lab.nodes("lab")
    lab.delete("lab")

    assert told["ClusterStatus"] == "InService"
    assert told["InstanceGroups"][0]["SoftwareUpdateStatus"] == "Succeeded"
    assert set(after.values()) == {"Running"}
    assert before.keys() == after.keys()


def test_a_node_that_moves_to_another_cluster_has_a_new_root_and_runs_the_scripts_there(lab):
    session = botocore.session.Session()
    session.set_config_variable("data_path", str(MODELS))  # the operation is newer than the installed botocore
    sagemaker = boto3.session.Session(botocore_session=session).client(
        "sagemaker", region_name="us-west-2", **lab.aws.client_arguments
    )
    for name in ("one", "two"):
        lab.create(name, NodeProvisioningMode="Continuous")
    eventually(lambda: all([*lab.nodes(name).values()] == ["Running"] * 2 for name in ("one", "two")))
    arns = {name: sagemaker.describe_cluster(ClusterName=name)["ClusterArn"] for name in ("one", "two")}
    moved, stays = lab.nodes("one")
    lab.fleet.node(moved).write_file("/root/mark", b"1")
    places = {"SourceInstanceGroupName": "workers", "TargetInstanceGroupName": "workers"}
    sagemaker.move_cluster_nodes(SourceClusterArn=arns["one"], TargetClusterArn=arns["two"], NodeIds=[moved], **places)
    eventually(lambda: lab.nodes("two").get(moved) == "Running")
    node = lab.fleet.node(moved)
    kept = node.run(["sh", "-c", "test -e /etc/created && ! test -e /root/mark"], timeout_s=10).returncode
    one, two = lab.nodes("one"), lab.nodes("two")
    for name in ("one", "two"):
        lab.delete(name)

    assert kept == 0
    assert (one, len(two)) == ({stays: "Running"}, 3)


def test_with_continuous_provisioning_failing_nodes_do_not_fail_the_cluster(lab):
    lab.create("keen", script="broken", NodeProvisioningMode="Continuous")
    eventually(lambda: "Failure" in lab.nodes("keen").values())
    status = lab.status("keen")
    lab.delete("keen")

    assert status == "InService"
