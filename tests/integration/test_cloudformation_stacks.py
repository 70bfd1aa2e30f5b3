"""Stacks deployed through the API, as the CDK CLI does it: created, changed, failed, taken back, deleted."""

import json
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import serve

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}}
BROKEN = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-00000000000000000", "CidrBlock": "10.1.0.0/24"}}


class Cloud:
    """Clients of one embedded AWS, and waiting for stacks."""

    def __init__(self, reach: dict[str, str]) -> None:
        self._reach, self._made = reach, {}
        self.stacks = self.client("cloudformation")

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name="us-west-2", **self._reach)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()

    def create(
        self, name: str, resources: dict[str, Any], *, outputs: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        self.stacks.create_stack(StackName=name, TemplateBody=body(resources, outputs), **more)
        return self.settled(name)

    def update(
        self, name: str, resources: dict[str, Any], *, outputs: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        self.stacks.update_stack(StackName=name, TemplateBody=body(resources, outputs), **more)
        return self.settled(name)

    def delete(self, name: str) -> Any:
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name)
        return self.settled(stack_id)

    def settled(self, name: str) -> Any:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            stack = self.stacks.describe_stacks(StackName=name)["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                return stack
            time.sleep(0.02)
        raise TimeoutError(name)

    def events(self, name: str) -> list[tuple[str, str]]:
        pages = self.stacks.get_paginator("describe_stack_events").paginate(StackName=name)
        newest_first = [event for page in pages for event in page["StackEvents"]]
        return [(event["LogicalResourceId"], event["ResourceStatus"]) for event in reversed(newest_first)]

    def physical(self, name: str, logical_id: str) -> str:
        found = self.stacks.describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def vpcs(self) -> set[str]:
        return {vpc["VpcId"] for vpc in self.client("ec2").describe_vpcs()["Vpcs"] if not vpc["IsDefault"]}


def body(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> str:
    return json.dumps({"Resources": resources, **({"Outputs": outputs} if outputs else {})})


def parameter(value: Any) -> dict[str, Any]:
    return {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": value}}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        cloud = Cloud(running.client_arguments)
        yield cloud
        cloud.close()


def test_a_network_is_made_in_order_and_deleted_in_reverse(cloud):
    before = cloud.vpcs()
    resources = {
        "Route": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "Attached",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "DestinationCidrBlock": "0.0.0.0/0",
                "GatewayId": {"Ref": "Gateway"},
            },
        },
        "Attached": {
            "Type": "AWS::EC2::VPCGatewayAttachment",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
        },
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.1.0.0/24"}},
        "Joined": {
            "Type": "AWS::EC2::SubnetRouteTableAssociation",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
        },
        "Address": {"Type": "AWS::EC2::EIP", "DependsOn": "Attached", "Properties": {"Domain": "vpc"}},
        "Nat": {
            "Type": "AWS::EC2::NatGateway",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]}},
        },
        "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "g", "VpcId": {"Ref": "Vpc"}}},
        "Self": {
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": {"GroupId": {"Ref": "Group"}, "IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Group"}},
        },
        "Vpc": VPC,
    }

    made = cloud.create("network", resources)
    events = cloud.events("network")

    assert made["StackStatus"] == "CREATE_COMPLETE"
    assert events.index(("Vpc", "CREATE_COMPLETE")) < events.index(("Subnet", "CREATE_IN_PROGRESS"))
    assert events.index(("Attached", "CREATE_COMPLETE")) < events.index(("Route", "CREATE_IN_PROGRESS"))
    assert cloud.delete("network")["StackStatus"] == "DELETE_COMPLETE"
    assert cloud.vpcs() == before


def test_a_change_set_without_changes_says_so_as_aws_does(cloud):
    resources = {"P": parameter("a")}
    cloud.create("unchanged", resources)
    cloud.stacks.create_change_set(StackName="unchanged", ChangeSetName="c", TemplateBody=body(resources))

    found = cloud.stacks.describe_change_set(StackName="unchanged", ChangeSetName="c")

    assert found["Status"] == "FAILED"
    assert found["StatusReason"].startswith("The submitted information didn't contain changes.")
    with pytest.raises(ClientError, match=r"No updates are to be performed\."):
        cloud.stacks.update_stack(StackName="unchanged", TemplateBody=body(resources))
    cloud.delete("unchanged")


def test_an_update_changes_in_place_replaces_and_removes(cloud):
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.1.0.0/24"}}
    cloud.create("updated", {"Vpc": VPC, "S": subnet, "P": parameter("a"), "Gone": parameter("x")})
    before = {name: cloud.physical("updated", name) for name in ("Vpc", "S", "P")}
    moved = {**subnet, "Properties": {**subnet["Properties"], "CidrBlock": "10.1.1.0/24"}}
    wanted = {"Vpc": VPC, "S": moved, "P": parameter({"Ref": "S"})}
    cloud.stacks.create_change_set(StackName="updated", ChangeSetName="c", TemplateBody=body(wanted))
    changes = {
        entry["ResourceChange"]["LogicalResourceId"]: (
            entry["ResourceChange"]["Action"],
            entry["ResourceChange"].get("Replacement"),
        )
        for entry in cloud.stacks.describe_change_set(StackName="updated", ChangeSetName="c")["Changes"]
    }

    cloud.stacks.execute_change_set(StackName="updated", ChangeSetName="c")
    status = cloud.settled("updated")["StackStatus"]
    after = {name: cloud.physical("updated", name) for name in ("Vpc", "S", "P")}
    events = cloud.events("updated")

    assert changes == {"S": ("Modify", "True"), "P": ("Modify", "False"), "Gone": ("Remove", None)}
    assert status == "UPDATE_COMPLETE"
    assert (after["Vpc"], after["P"]) == (before["Vpc"], before["P"])
    assert after["S"] != before["S"]
    assert cloud.client("ssm").get_parameter(Name=after["P"])["Parameter"]["Value"] == after["S"]
    cleaning = events.index(("updated", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"))
    assert events.index(("S", "DELETE_COMPLETE")) > cleaning < events.index(("Gone", "DELETE_COMPLETE"))
    cloud.delete("updated")


def test_a_failed_create_leaves_nothing(cloud):
    before = cloud.vpcs()

    stack = cloud.create("failing", {"Vpc": VPC, "Bad": {**BROKEN, "DependsOn": "Vpc"}})

    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert cloud.vpcs() == before
    with pytest.raises(ClientError, match="is in ROLLBACK_COMPLETE state and can not be updated"):
        cloud.update("failing", {"Vpc": VPC})
    cloud.delete("failing")


def test_a_failed_update_restores_everything(cloud):
    cloud.create("restored", {"P": parameter("good")})
    name = cloud.physical("restored", "P")
    before = cloud.vpcs()

    stack = cloud.update("restored", {"P": parameter("new"), "Vpc": VPC, "Bad": {**BROKEN, "DependsOn": ["P", "Vpc"]}})

    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert cloud.client("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "good"
    assert cloud.vpcs() == before
    assert cloud.update("restored", {"P": parameter("again")})["StackStatus"] == "UPDATE_COMPLETE"
    cloud.delete("restored")


def test_without_rollback_a_failure_stays_and_can_be_taken_back(cloud):
    cloud.create("paused", {"P": parameter("good")})
    name = cloud.physical("paused", "P")
    bad = {"P": parameter("new"), "Bad": {**BROKEN, "DependsOn": "P"}}

    paused = cloud.update("paused", bad, DisableRollback=True)
    cloud.stacks.rollback_stack(StackName="paused")

    assert paused["StackStatus"] == "UPDATE_FAILED"
    assert cloud.settled("paused")["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert cloud.client("ssm").get_parameter(Name=name)["Parameter"]["Value"] == "good"
    cloud.delete("paused")


def test_a_bucket_with_objects_is_not_deleted_until_it_is_empty(cloud):
    cloud.create("bucket", {"B": {"Type": "AWS::S3::Bucket"}})
    name = cloud.physical("bucket", "B")
    cloud.client("s3").put_object(Bucket=name, Key="k", Body=b"x")

    assert cloud.delete("bucket")["StackStatus"] == "DELETE_FAILED"
    cloud.client("s3").delete_object(Bucket=name, Key="k")
    assert cloud.delete("bucket")["StackStatus"] == "DELETE_COMPLETE"


def test_an_export_in_use_is_neither_deleted_nor_changed(cloud):
    outputs = {"V": {"Value": {"Ref": "P"}, "Export": {"Name": "shared"}}}
    cloud.create("exporting", {"P": parameter("a")}, outputs=outputs)
    cloud.create("importing", {"Q": parameter({"Fn::ImportValue": "shared"})})

    assert cloud.stacks.list_imports(ExportName="shared")["Imports"] == ["importing"]
    with pytest.raises(ClientError, match="Cannot delete export shared as it is in use by importing"):
        cloud.delete("exporting")
    refused = cloud.update("exporting", {"P": parameter("a")})
    assert refused["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    cloud.delete("importing")
    assert cloud.delete("exporting")["StackStatus"] == "DELETE_COMPLETE"


def test_two_stacks_are_made_at_the_same_time(cloud):
    for name in ("left", "right"):
        resources = {"Vpc": VPC, **{f"P{number}": parameter("x") for number in range(5)}}
        cloud.stacks.create_stack(StackName=name, TemplateBody=body(resources))

    assert {cloud.settled(name)["StackStatus"] for name in ("left", "right")} == {"CREATE_COMPLETE"}
    for name in ("left", "right"):
        cloud.delete(name)


def test_rejects_an_unknown_resource_type_and_names_it(cloud):
    with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::Braket::Thing\]"):
        cloud.create("unknown", {"A": {"Type": "AWS::Braket::Thing"}})
