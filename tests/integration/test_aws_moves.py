"""MoveClusterNodes on the embedded AWS: what moves, what is refused, and both statuses on the way."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError
from footing import ready_network, service_role

from holdfast.localcloud.aws import EmbeddedAws, serve
from holdfast.localcloud.home import signed_headers

MODELS = Path(__file__).parents[2] / "holdfast/localcloud/aws/host/models"
SCRIPT = {"SourceS3Uri": "s3://sagemaker-lifecycle/abc", "OnCreate": "on_create.sh"}
REGION = "us-west-2"


class Lab:
    """Two clusters of EKS, ``one`` with the groups a, b and other, ``two`` with c; the test plays the control plane."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws = aws
        session = botocore.session.Session()
        session.set_config_variable("data_path", str(MODELS))  # the operation is newer than the installed botocore
        self._session = boto3.session.Session(botocore_session=session, region_name=REGION)
        self.sagemaker = self.client("sagemaker")
        self.arns: dict[str, str] = {}

    def client(self, service: str) -> Any:
        return self._session.client(service, region_name=REGION, **self.aws.client_arguments)

    def prepare(self) -> None:
        ec2, eks, s3 = self.client("ec2"), self.client("eks"), self.client("s3")
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{n}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"][
                "SubnetId"
            ]
            for n, zone in enumerate("ab")
        ]
        security = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
        role = service_role(self.client("iam"), "nodes")
        ready_network(ec2, vpc=vpc, group=security)
        s3.create_bucket(Bucket="sagemaker-lifecycle", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket="sagemaker-lifecycle", Key="abc/on_create.sh", Body=b"#!/bin/sh\n")
        networks = [{"SecurityGroupIds": [security], "Subnets": [subnet]} for subnet in subnets]

        def group(name: str, count: int, **more: Any) -> dict[str, Any]:
            return {"InstanceGroupName": name, "InstanceType": "ml.c5.xlarge", "InstanceCount": count,
                    "ExecutionRole": role, "LifeCycleConfig": SCRIPT, **more}  # fmt: skip

        groups = {
            "one": [
                group("a", 3, MinInstanceCount=1),
                group("b", 1),
                group("far", 1, OverrideVpcConfig=networks[1]),
                group("other", 1, InstanceType="ml.m5.xlarge"),
            ],
            "two": [group("c", 1)],
        }
        for name, of in groups.items():
            eks.create_cluster(name=name, version="1.33", roleArn=role, accessConfig={"authenticationMode": "API"},
                               resourcesVpcConfig={"subnetIds": subnets})  # fmt: skip
            eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 0.05})
            self.arns[name] = self.sagemaker.create_cluster(
                ClusterName=name,
                InstanceGroups=of,
                VpcConfig=networks[0],
                Orchestrator={"Eks": {"ClusterArn": eks.describe_cluster(name=name)["cluster"]["arn"]}},
                NodeProvisioningMode="Continuous",
            )["ClusterArn"]
            self.report(name, dict.fromkeys(self.nodes(name), "Running"), status="InService")

    def ask(self, method: str, path: str, body: bytes = b"") -> Any:
        url = f"{self.aws.endpoint}/_holdfast/hyperpod/{path}"
        headers = signed_headers(self.aws.keys, method=method, url=url, region=REGION, service="holdfast", body=body)
        request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def report(self, cluster: str, statuses: dict[str, str], *, status: str = "") -> None:
        body: dict[str, Any] = {"cluster_arn": self.arns[cluster]}
        body["nodes"] = [{"instance_id": name, "status": one} for name, one in statuses.items()]
        self.ask("POST", "report", json.dumps({**body, **({"cluster_status": status} if status else {})}).encode())

    def nodes(self, cluster: str, group: str = "") -> dict[str, str]:
        found = self.sagemaker.list_cluster_nodes(ClusterName=cluster)["ClusterNodeSummaries"]
        return {
            one["InstanceId"]: one["InstanceStatus"]["Status"]
            for one in found
            if group in ("", one["InstanceGroupName"])
        }

    def counts(self, cluster: str) -> dict[str, int]:
        groups = self.sagemaker.describe_cluster(ClusterName=cluster)["InstanceGroups"]
        return {one["InstanceGroupName"]: one["TargetCount"] for one in groups}

    def move(self, group: str, to: str, *, target: str = "one", **nodes: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.sagemaker.move_cluster_nodes(
            SourceClusterArn=self.arns["one"],
            SourceInstanceGroupName=group,
            TargetClusterArn=self.arns[target],
            TargetInstanceGroupName=to,
            **nodes,
        )
        del answer["ResponseMetadata"]
        return answer


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with serve(home=tmp_path) as running:
        made = Lab(running)
        made.prepare()
        yield made


@pytest.mark.documented("HP-122")
def test_a_node_moves_to_another_group_of_its_cluster_with_its_id_and_address(lab: Lab) -> None:
    first = next(iter(lab.nodes("one", "a")))
    before = lab.sagemaker.describe_cluster_node(ClusterName="one", NodeId=first)["NodeDetails"]
    assert lab.move("a", "b", NodeIds=[first]) == {"Successful": [first]}
    assert lab.nodes("one", "a")[first] == "DetachInProgress"
    assert [one for one in lab.ask("GET", "requests")["requests"] if one["action"] == "detach"] == [
        {"cluster_arn": lab.arns["one"], "instance_id": first, "action": "detach"}
    ]
    lab.report("one", {first: "AttachInProgress"})
    assert lab.nodes("one", "b")[first] == "AttachInProgress"
    lab.report("one", {first: "Running"})
    after = lab.sagemaker.describe_cluster_node(ClusterName="one", NodeId=first)["NodeDetails"]
    assert (after["InstanceGroupName"], after["InstanceStatus"]["Status"]) == ("b", "Running")
    same = ("InstanceId", "NodeLogicalId", "PrivatePrimaryIp")
    assert [after[key] for key in same] == [before[key] for key in same]
    assert (lab.counts("one")["a"], lab.counts("one")["b"]) == (2, 2)


@pytest.mark.documented("HP-122")
def test_a_node_moves_to_another_cluster_and_is_in_one_of_them_at_any_time(lab: Lab) -> None:
    answer = lab.move("a", "c", target="two", InstanceCount=1)
    (name,) = answer["Successful"]
    assert (name in lab.nodes("one"), name in lab.nodes("two")) == (True, False)
    lab.report("one", {name: "AttachInProgress"})
    assert (name in lab.nodes("one"), lab.nodes("two", "c")[name]) == (False, "AttachInProgress")
    lab.report("two", {name: "Running"})
    assert (lab.counts("one")["a"], lab.counts("two")["c"]) == (2, 2)


@pytest.mark.documented("HP-123")
def test_each_node_is_judged_by_itself(lab: Lab) -> None:
    first, second, _ = lab.nodes("one", "a")
    other = next(iter(lab.nodes("one", "b")))
    lab.sagemaker.batch_reboot_cluster_nodes(ClusterName="one", NodeIds=[second])
    answer = lab.move("a", "b", NodeIds=[first, second, other, "i-0123456789abcdef0"])
    assert answer["Successful"] == [first]
    codes = {one["NodeId"]: one["Code"] for one in answer["Failed"]}
    assert codes == {second: "NodeIdInUse", other: "NodeIdNotFound", "i-0123456789abcdef0": "NodeIdNotFound"}


@pytest.mark.documented("HP-123")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group": "a", "to": "b", "InstanceCount": 3}, "below its MinInstanceCount of 1"),
        ({"group": "a", "to": "b", "InstanceCount": 4}, "Only 3 nodes are eligible to move; 4 were requested"),
        ({"group": "a", "to": "far", "InstanceCount": 1}, "Only 0 nodes are eligible"),
        ({"group": "a", "to": "other", "InstanceCount": 1}, "Only 0 nodes are eligible"),
        ({"group": "a", "to": "a", "InstanceCount": 1}, "must be different from the source"),
        ({"group": "a", "to": "none", "InstanceCount": 1}, "Instance group 'none' does not exist in cluster 'one'"),
        ({"group": "a", "to": "b"}, "Exactly one of NodeIds, NodeLogicalIds, or InstanceCount"),
        ({"group": "a", "to": "b", "NodeIds": ["i-0123456789abcdef0"]}, "does not exist in the source instance group"),
        ({"group": "a", "to": "b", "InstanceCount": 51}, "less than or equal to 50"),
    ],
    ids=lambda given: "" if isinstance(given, dict) else given[:24],
)
def test_a_move_that_cannot_be_is_refused_as_a_whole(lab: Lab, given: dict[str, Any], words: str) -> None:
    before = lab.nodes("one"), lab.counts("one")
    with pytest.raises(ClientError, match=words):
        lab.move(**given)
    assert (lab.nodes("one"), lab.counts("one")) == before


@pytest.mark.documented("HP-123")
def test_reasons_of_the_target_are_told_for_each_node(lab: Lab) -> None:
    first = next(iter(lab.nodes("one", "a")))
    for to, words in (("far", "is not in a subnet of the target"), ("other", "supports ml.m5.xlarge only")):
        with pytest.raises(ClientError, match=words):
            lab.move("a", to, NodeIds=[first])


@pytest.mark.documented("HP-124")
def test_a_client_token_is_answered_once(lab: Lab) -> None:
    first = lab.move("a", "b", InstanceCount=1, ClientToken="t")
    assert lab.move("a", "b", InstanceCount=1, ClientToken="t") == first
    assert lab.counts("one")["b"] == 2
    with pytest.raises(ClientError, match="used before with different parameters"):
        lab.move("a", "b", InstanceCount=2, ClientToken="t")


@pytest.mark.documented("HP-124")
def test_a_cluster_that_changes_takes_part_in_no_move(lab: Lab) -> None:
    lab.sagemaker.delete_cluster(ClusterName="two")
    with pytest.raises(ClientError, match="Cluster 'two' is in Deleting status"):
        lab.move("a", "c", target="two", InstanceCount=1)
