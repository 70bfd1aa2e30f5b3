"""What GuardDuty leaves in a VPC goes with the stack, and nothing else does."""

import io
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import assertions
from moto import mock_aws

from holdfast_constructs import HyperPodEks, HyperPodNetwork, guard_duty

MANAGED = [{"Key": "GuardDutyManaged", "Value": "true"}]


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # a second
        with mock_aws():
            yield


@pytest.fixture
def ec2(aws: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setattr("time.sleep", lambda _: None)
    return boto3.client("ec2", region_name="us-west-2")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []

    def put(request: Any, **_: Any) -> io.BytesIO:
        told.append(json.loads(request.data))
        return io.BytesIO()

    monkeypatch.setattr("urllib.request.urlopen", put)
    return told


def made(ec2: Any, *, managed: bool) -> tuple[str, str, str]:
    """A VPC with an endpoint and a security group, GuardDuty's or somebody's."""
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    tags = MANAGED if managed else [{"Key": "owner", "Value": "us"}]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
    endpoint = ec2.create_vpc_endpoint(
        VpcId=vpc, ServiceName="com.amazonaws.us-west-2.guardduty-data", VpcEndpointType="Interface"
    )["VpcEndpoint"]["VpcEndpointId"]
    ec2.create_tags(Resources=[group, endpoint], Tags=tags)
    return vpc, group, endpoint


def event(request: str, vpc: str) -> dict[str, Any]:
    ids = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "l", "ResponseURL": "https://answer"}
    return {"RequestType": request, "ResourceProperties": {"VpcId": vpc}, **ids}


def context(left_ms: int = 900_000) -> Any:
    return SimpleNamespace(get_remaining_time_in_millis=lambda: left_ms)


def groups(ec2: Any) -> set[str]:
    return {found["GroupId"] for found in ec2.describe_security_groups()["SecurityGroups"]}


def test_deleting_takes_away_what_guardduty_has_made_in_this_vpc(ec2: Any, answers: list[dict[str, Any]]) -> None:
    vpc, group, endpoint = made(ec2, managed=True)
    _, other_group, _ = made(ec2, managed=True)

    guard_duty.handler(event("Delete", vpc), context())

    left = [found for found in ec2.describe_vpc_endpoints()["VpcEndpoints"] if found["State"] != "deleted"]
    assert endpoint not in {found["VpcEndpointId"] for found in left}
    assert group not in groups(ec2)
    assert other_group in groups(ec2)
    assert [(told["Status"], told["PhysicalResourceId"]) for told in answers] == [("SUCCESS", vpc)]


@pytest.mark.parametrize(("request_type", "managed"), [("Delete", False), ("Create", True), ("Update", True)])
def test_nothing_else_is_touched(request_type: str, managed: bool, ec2: Any, answers: list[dict[str, Any]]) -> None:
    vpc, group, endpoint = made(ec2, managed=managed)

    guard_duty.handler(event(request_type, vpc), context())

    assert group in groups(ec2)
    assert endpoint in {found["VpcEndpointId"] for found in ec2.describe_vpc_endpoints()["VpcEndpoints"]}
    assert [told["Status"] for told in answers] == ["SUCCESS"]


def test_an_endpoint_that_does_not_go_in_time_is_said(answers: list[dict[str, Any]]) -> None:
    pages = [{"VpcEndpoints": [{"VpcEndpointId": "vpce-1", "State": "deleting"}]}]
    client = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: pages))

    with pytest.raises(TimeoutError, match="vpce-1 is not deleted yet; try again"):
        guard_duty.clear(client, {}, lambda: 5.0)
    assert answers == []


def test_the_vpc_is_cleared_after_the_control_plane_is_gone_and_before_the_vpc_goes() -> None:
    stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
    network = HyperPodNetwork(
        stack,
        "Network",
        cidr="10.1.0.0/16",
        availability_zone="us-west-2a",
        second_availability_zone="us-west-2b",
        orchestrator="eks",
    )
    HyperPodEks(
        stack,
        "Eks",
        cluster_name="demo",
        network=network,
        kubernetes_version="1.33",
        instance_types=[],
        removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    template = assertions.Template.from_stack(stack)
    ((name, cleared),) = template.find_resources("Custom::HoldfastGuardDuty").items()
    (control_plane,) = template.find_resources("AWS::EKS::Cluster").values()

    assert name in control_plane["DependsOn"]
    assert cleared["Properties"]["VpcId"] == {"Ref": "Network6E62CE96"}
    assert cleared["DeletionPolicy"] == "RetainExceptOnCreate"  # as the VPC: what stays is not cleared
