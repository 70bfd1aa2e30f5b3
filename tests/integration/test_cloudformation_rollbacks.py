"""Deployments that fail as they would on AWS, and what is left afterwards."""

import json
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from footing import RIGHTS, TRUST, ready_network

from holdfast.localcloud.aws import serve

REGION = "us-west-2"


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def resource(kind: str, needs: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties, **({"DependsOn": needs} if needs else {})}


def body(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> str:
    return json.dumps({"Resources": resources, **({"Outputs": outputs} if outputs else {})})


class Cloud:
    """Clients of one embedded AWS, and waiting for stacks."""

    def __init__(self, reach: dict[str, str]) -> None:
        self._reach, self._made = reach, {}
        self.stacks = self.client("cloudformation")

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name=REGION, **self._reach)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()

    def deploy(self, verb: str, name: str, resources: dict[str, Any], outputs: Any = None, **more: Any) -> str:
        capabilities = ["CAPABILITY_NAMED_IAM"]
        call = getattr(self.stacks, f"{verb}_stack")
        call(StackName=name, TemplateBody=body(resources, outputs), Capabilities=capabilities, **more)
        return self.settled(name)

    def delete(self, name: str, **more: Any) -> str:
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name, **more)
        return self.settled(stack_id)

    def settled(self, name: str) -> str:
        while True:
            status = str(self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.02)

    def reasons(self, name: str) -> str:
        events = self.stacks.describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason", "") for event in reversed(events))

    def physical(self, name: str, logical_id: str) -> str:
        found = self.stacks.describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        cloud = Cloud(running.client_arguments)
        yield cloud
        cloud.close()


@pytest.fixture(scope="module")
def place(cloud):
    """A network, a role, a lifecycle script and an EKS cluster made by a stack of their own, shared through exports."""
    resources = {
        "Vpc": resource("AWS::EC2::VPC", CidrBlock="10.1.0.0/16"),
        "Role": resource(
            "AWS::IAM::Role",
            RoleName="nodes",
            AssumeRolePolicyDocument=TRUST,
            Policies=[{"PolicyName": "nodes", "PolicyDocument": RIGHTS}],
        ),
        "Group": resource("AWS::EC2::SecurityGroup", GroupDescription="g", VpcId=ref("Vpc")),
        "Bucket": resource("AWS::S3::Bucket", BucketName="sagemaker-lifecycle"),
        **{
            f"Subnet{zone}": resource(
                "AWS::EC2::Subnet",
                VpcId=ref("Vpc"),
                CidrBlock=f"10.1.{number}.0/24",
                AvailabilityZone=f"{REGION}{zone}",
            )
            for number, zone in enumerate("ab")
        },
        "Eks": resource(
            "AWS::EKS::Cluster",
            Name="lab",
            Version="1.33",
            RoleArn=att("Role", "Arn"),
            AccessConfig={"AuthenticationMode": "API"},
            ResourcesVpcConfig={"SubnetIds": [ref("Subneta"), ref("Subnetb")]},
        ),
    }
    outputs = {
        name: {"Value": value, "Export": {"Name": name}}
        for name, value in {
            "Subnet": ref("Subneta"),
            "Group": ref("Group"),
            "Role": att("Role", "Arn"),
            "EksArn": att("Eks", "Arn"),
            "EksName": ref("Eks"),
        }.items()
    }
    assert cloud.deploy("create", "place", resources, outputs) == "CREATE_COMPLETE"
    cloud.client("s3").put_object(Bucket="sagemaker-lifecycle", Key="abc/on_create.sh", Body=b"#!/bin/sh\n")
    ready_network(
        cloud.client("ec2"), vpc=cloud.physical("place", "Vpc"), group=cloud.physical("place", "Group"), region=REGION
    )


def exported(name: str) -> dict[str, str]:
    return {"Fn::ImportValue": name}


def hyperpod(count: int = 2, **more: Any) -> dict[str, Any]:
    return resource(
        "AWS::SageMaker::Cluster",
        ClusterName="lab",
        VpcConfig={"Subnets": [exported("Subnet")], "SecurityGroupIds": [exported("Group")]},
        Orchestrator={"Eks": {"ClusterArn": exported("EksArn")}},
        InstanceGroups=[
            {
                "InstanceGroupName": "workers",
                "InstanceType": "ml.p5.48xlarge",
                "InstanceCount": count,
                "ExecutionRole": exported("Role"),
                "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-lifecycle/abc", "OnCreate": "on_create.sh"},
                **more,
            }
        ],
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (resource("AWS::EKS::Addon", ClusterName="lab", AddonName="no-such-addon"), "specified is not supported"),
        (resource("AWS::EKS::Addon", ClusterName="none", AddonName="vpc-cni"), "No cluster found for name: none"),
        (resource("AWS::EKS::AccessEntry", ClusterName="none", PrincipalArn="arn:aws:iam::123456789012:role/nodes"),
         "No cluster found for name: none"),
        (resource("AWS::EKS::PodIdentityAssociation", ClusterName="lab", Namespace="a", ServiceAccount="b",
                  RoleArn="arn:aws:iam::123456789012:role/none"), "could not be assumed because it does not exist"),
        (resource("AWS::EKS::Cluster", Name="lab", RoleArn="arn:aws:iam::123456789012:role/nodes",
                  ResourcesVpcConfig={"SubnetIds": [exported("Subnet")]}), "Cluster already exists with name: lab"),
        (resource("AWS::EKS::Cluster", Version="1.12", RoleArn="arn:aws:iam::123456789012:role/nodes",
                  ResourcesVpcConfig={"SubnetIds": [exported("Subnet")]}), "unsupported Kubernetes version 1.12"),
        (resource("AWS::EKS::Cluster", RoleArn="arn:aws:iam::123456789012:role/nodes",
                  ResourcesVpcConfig={"SubnetIds": [exported("Subnet")]}), "at least two different AZs"),
        (resource("AWS::EKS::Addon", ClusterName="lab", AddonName="amazon-sagemaker-hyperpod-training-operator",
                  PodIdentityAssociations=[{"ServiceAccount": "a", "RoleArn": "arn:aws:iam::123456789012:role/nodes"}]),
         "Create a pod identity association of its own"),
        (hyperpod(SlurmConfig={"NodeType": "Compute"}), "requires Orchestrator.Slurm"),
        (resource("AWS::SNS::Topic", MaximumMessageSize=2048), "cannot set MaximumMessageSize"),
        (resource("Custom::HoldfastHelmRelease", ServiceToken="x", Release="r", Namespace="n", ChartPath="p",
                  TreeSha256="c" * 64, Archive={"Url": "https://example.com/a/main.tar.gz"}), "is not pinned"),
        (resource("Custom::HoldfastHelmRelease", ServiceToken="x", Release="r", Namespace="n", ChartPath="p",
                  TreeSha256="", Archive={"Bucket": "b", "Key": "k"}), "TreeSha256 is ''"),
        (resource("Custom::AWS", ServiceToken="x", Create='{"service": "Nothing", "action": "get"}'),
         "does not know the service Nothing"),
    ],
)  # fmt: skip
def test_a_creation_that_fails_says_why_and_leaves_nothing(cloud, place, bad, words):
    good = resource("AWS::SSM::Parameter", Type="String", Value="x", Name="left")

    status = cloud.deploy("create", "bad", {"Good": good, "Bad": {**bad, "DependsOn": "Good"}})
    reasons = cloud.reasons("bad")
    cloud.delete("bad")

    assert status == "ROLLBACK_COMPLETE"
    assert words in reasons
    with pytest.raises(ClientError, match="ParameterNotFound"):
        cloud.client("ssm").get_parameter(Name="left")


def test_an_update_that_fails_takes_back_the_cluster_and_keeps_its_nodes(cloud, place):
    resources = {"HyperPod": hyperpod(2)}
    assert cloud.deploy("create", "pods", resources) == "CREATE_COMPLETE", cloud.reasons("pods")
    sagemaker = cloud.client("sagemaker")
    before = {node["InstanceId"] for node in sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]}
    bad = resource("AWS::EKS::Addon", ["HyperPod"], ClusterName=exported("EksName"), AddonName="none")

    status = cloud.deploy("update", "pods", {"HyperPod": hyperpod(4), "Bad": bad})
    told = sagemaker.describe_cluster(ClusterName="lab")
    after = {node["InstanceId"] for node in sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]}

    assert status == "UPDATE_ROLLBACK_COMPLETE"
    assert (told["InstanceGroups"][0]["TargetCount"], after) == (2, before)
    refused = cloud.deploy("update", "pods", {"HyperPod": hyperpod(2, MinInstanceCount=5)})
    assert (refused, "MinInstanceCount must not exceed" in cloud.reasons("pods")) == ("UPDATE_ROLLBACK_COMPLETE", True)
    with pytest.raises(ClientError, match="Cannot delete export"):
        cloud.delete("place")
    assert cloud.delete("pods") == "DELETE_COMPLETE"


def test_an_update_whose_new_group_never_came_is_taken_back_and_the_next_one_works(cloud, place):
    def with_older(**more: Any) -> dict[str, Any]:
        cluster = hyperpod(1)
        (group,) = cluster["Properties"]["InstanceGroups"]
        cluster["Properties"]["InstanceGroups"].append({**group, "InstanceGroupName": "older", **more})
        return {"HyperPod": cluster}

    assert cloud.deploy("create", "groups", {"HyperPod": hyperpod(1)}) == "CREATE_COMPLETE", cloud.reasons("groups")

    status = cloud.deploy("update", "groups", with_older(MinInstanceCount=5))
    told = cloud.client("sagemaker").describe_cluster(ClusterName="lab")

    assert status == "UPDATE_ROLLBACK_COMPLETE", cloud.reasons("groups")
    assert "older" not in {group["InstanceGroupName"] for group in told["InstanceGroups"]}
    assert cloud.deploy("update", "groups", with_older()) == "UPDATE_COMPLETE", cloud.reasons("groups")
    assert cloud.deploy("update", "groups", {"HyperPod": hyperpod(1)}) == "UPDATE_COMPLETE", cloud.reasons("groups")
    assert cloud.delete("groups") == "DELETE_COMPLETE"


def test_a_group_that_the_template_no_longer_has_goes_restricted_or_not(cloud, place):
    cluster = hyperpod(1)
    group = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "ExecutionRole": exported("Role")}
    cluster["Properties"]["RestrictedInstanceGroups"] = [{**group, "InstanceGroupName": "nova"}]
    assert cloud.deploy("create", "groups", {"HyperPod": cluster}) == "CREATE_COMPLETE", cloud.reasons("groups")

    status = cloud.deploy("update", "groups", {"HyperPod": hyperpod(1)})
    told = cloud.client("sagemaker").describe_cluster(ClusterName="lab")

    assert (status, "RestrictedInstanceGroups" in told) == ("UPDATE_COMPLETE", False)
    assert cloud.delete("groups") == "DELETE_COMPLETE"


def test_a_replacement_is_made_before_the_old_one_goes_and_everything_follows_it(cloud, place):
    topic = resource("AWS::SNS::Topic", TopicName="first")
    rule = resource(
        "AWS::Events::Rule",
        EventPattern={"source": ["x"]},
        Targets=[{"Id": "topic", "Arn": ref("Topic")}],
    )
    assert cloud.deploy("create", "moving", {"Topic": topic, "Rule": rule}) == "CREATE_COMPLETE"
    old = cloud.physical("moving", "Topic")

    moved = resource("AWS::SNS::Topic", TopicName="second")
    assert cloud.deploy("update", "moving", {"Topic": moved, "Rule": rule}) == "UPDATE_COMPLETE"
    new = cloud.physical("moving", "Topic")
    target = cloud.client("events").list_targets_by_rule(Rule=cloud.physical("moving", "Rule"))["Targets"][0]["Arn"]
    topics = {one["TopicArn"] for one in cloud.client("sns").list_topics()["Topics"]}
    bad = resource("AWS::EKS::Addon", ["Topic"], ClusterName="lab", AddonName="none")
    third = resource("AWS::SNS::Topic", TopicName="third")
    status = cloud.deploy("update", "moving", {"Topic": third, "Rule": rule, "Bad": bad})

    assert (target, new in topics, old in topics) == (new, True, False)
    assert status == "UPDATE_ROLLBACK_COMPLETE"
    assert cloud.physical("moving", "Topic") == new
    assert {one["TopicArn"] for one in cloud.client("sns").list_topics()["Topics"]} == topics
    assert cloud.delete("moving") == "DELETE_COMPLETE"


def test_a_rollback_that_fails_can_be_continued_without_what_is_in_its_way(cloud, place):
    """Kubernetes versions only go up, so an update that changed one cannot be taken back: as on AWS."""

    def resources(version: str, name: str) -> dict[str, Any]:
        eks = resource(
            "AWS::EKS::Cluster",
            Name="upward",
            Version=version,
            RoleArn=exported("Role"),
            ResourcesVpcConfig={"SubnetIds": [ref("A"), ref("B")]},
        )
        addon = resource("AWS::EKS::Addon", ClusterName=ref("Eks"), AddonName=name)
        vpc = resource("AWS::EC2::VPC", CidrBlock="10.2.0.0/16")
        subnets = {
            logical: resource("AWS::EC2::Subnet", VpcId=ref("Vpc"), CidrBlock=block, AvailabilityZone=f"{REGION}{zone}")
            for logical, block, zone in (("A", "10.2.0.0/24", "a"), ("B", "10.2.1.0/24", "b"))
        }
        return {"Vpc": vpc, **subnets, "Eks": eks, "Addon": addon}

    assert cloud.deploy("create", "upward", resources("1.33", "vpc-cni")) == "CREATE_COMPLETE", cloud.reasons("upward")
    failed = cloud.deploy("update", "upward", resources("1.34", "none"))
    cloud.stacks.continue_update_rollback(StackName="upward", ResourcesToSkip=["Eks"])

    assert failed == "UPDATE_ROLLBACK_FAILED"
    assert "Unsupported Kubernetes minor version update" in cloud.reasons("upward")
    assert cloud.settled("upward") == "UPDATE_ROLLBACK_COMPLETE"
    assert cloud.client("eks").list_addons(clusterName="upward")["addons"] == ["vpc-cni"]
    assert cloud.delete("upward") == "DELETE_COMPLETE", cloud.reasons("upward")


def test_a_deletion_that_fails_names_what_is_in_its_way_and_goes_on_later(cloud, place):
    eks, role = cloud.client("eks"), "arn:aws:iam::123456789012:role/nodes"
    subnets = [one["SubnetId"] for one in cloud.client("ec2").describe_subnets(
        Filters=[{"Name": "cidr-block", "Values": ["10.1.0.0/24", "10.1.1.0/24"]}])["Subnets"]]  # fmt: skip
    control = resource("AWS::EKS::Cluster", Name="kept", RoleArn=role, ResourcesVpcConfig={"SubnetIds": subnets})
    assert cloud.deploy("create", "kept", {"Eks": control}) == "CREATE_COMPLETE"
    eks.create_nodegroup(clusterName="kept", nodegroupName="by-hand", nodeRole=role, subnets=subnets)

    assert cloud.delete("kept") == "DELETE_FAILED"
    assert "Cluster has nodegroups attached" in cloud.reasons("kept")
    eks.delete_nodegroup(clusterName="kept", nodegroupName="by-hand")
    eks.get_waiter("nodegroup_deleted").wait(clusterName="kept", nodegroupName="by-hand", WaiterConfig={"Delay": 0.05})
    assert cloud.delete("kept") == "DELETE_COMPLETE"


def test_stacks_inside_a_stack_pass_values_both_ways_and_roll_back_with_it(cloud, place):
    inner = {
        "Parameters": {"Text": {"Type": "String"}},
        "Resources": {"P": resource("AWS::SSM::Parameter", Type="String", Value=ref("Text"), Name="inner")},
        "Outputs": {"Name": {"Value": ref("P")}},
    }
    s3 = cloud.client("s3")
    s3.put_object(Bucket="sagemaker-lifecycle", Key="inner.json", Body=json.dumps(inner).encode())
    url = "https://sagemaker-lifecycle.s3.us-west-2.amazonaws.com/inner.json"

    def resources(text: str) -> dict[str, Any]:
        nested = resource("AWS::CloudFormation::Stack", TemplateURL=url, Parameters={"Text": text})
        outer = resource("AWS::SSM::Parameter", Type="String", Value=att("Nested", "Outputs.Name"), Name="outer")
        return {"Nested": nested, "Outer": outer}

    ssm = cloud.client("ssm")
    assert cloud.deploy("create", "outer", resources("a")) == "CREATE_COMPLETE", cloud.reasons("outer")
    assert ssm.get_parameter(Name="outer")["Parameter"]["Value"] == "inner"
    bad = resource("AWS::EKS::Addon", ["Nested"], ClusterName="lab", AddonName="none")
    status = cloud.deploy("update", "outer", {**resources("b"), "Bad": bad})

    assert status == "UPDATE_ROLLBACK_COMPLETE", cloud.reasons("outer")
    assert ssm.get_parameter(Name="inner")["Parameter"]["Value"] == "a"
    nested = cloud.physical("outer", "Nested")
    assert cloud.delete("outer") == "DELETE_COMPLETE"
    assert cloud.stacks.describe_stacks(StackName=nested)["Stacks"][0]["StackStatus"] == "DELETE_COMPLETE"


def test_a_call_of_an_api_is_a_resource(cloud, place):
    call = {
        "service": "SSM",
        "action": "getParameter",
        "parameters": {"Name": "read"},
        "physicalResourceId": {"id": "called"},
    }
    parameter = resource("AWS::SSM::Parameter", Type="String", Value="read", Name="read")
    custom = resource("Custom::AWS", ServiceToken="x", Create=json.dumps(call))
    outputs = {"Value": {"Value": att("Call", "Parameter.Value")}}

    status = cloud.deploy("create", "calling", {"P": parameter, "Call": {**custom, "DependsOn": "P"}}, outputs)
    told = cloud.stacks.describe_stacks(StackName="calling")["Stacks"][0]["Outputs"]

    assert status == "CREATE_COMPLETE", cloud.reasons("calling")
    assert (told[0]["OutputValue"], cloud.physical("calling", "Call")) == ("read", "called")
    assert cloud.delete("calling") == "DELETE_COMPLETE"
