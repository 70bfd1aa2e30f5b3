"""What CloudFormation refuses before it makes anything, and how it tells."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import serve

REGION = "us-west-2"


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home: Path = tmp_path_factory.mktemp("cloud")
    with serve(home=home, hyperpod="simulated", skip_waits=True) as aws:
        client = boto3.client("cloudformation", region_name=REGION, **aws.client_arguments)
        yield client
        client.close()


def body(kind: str, **properties: Any) -> str:
    return json.dumps({"Resources": {"Thing": {"Type": kind, "Properties": properties}}})


def test_a_change_set_fails_for_properties_that_are_wrong_and_events_tell_which(stacks: Any) -> None:
    template = body("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", Nope=1)
    named = {"StackName": "early", "ChangeSetName": "first"}

    made = stacks.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template)
    told = stacks.describe_change_set(**named)
    (event,) = stacks.describe_events(ChangeSetName=made["Id"])["OperationEvents"]

    assert told["Status"] == "FAILED"
    assert "[AWS::EarlyValidation::PropertyValidation]" in told["StatusReason"]
    assert (event["EventType"], event["LogicalResourceId"]) == ("VALIDATION_ERROR", "Thing")
    assert event["ValidationStatusReason"] == "#: extraneous key [Nope] is not permitted"
    assert event["ValidationPath"] == "/Resources/Thing/Properties"


def test_a_type_that_the_region_lacks_is_not_recognized(stacks: Any) -> None:
    with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::SageMaker::ClusterSchedulerConfig\]"):
        stacks.create_stack(StackName="elsewhere", TemplateBody=body("AWS::SageMaker::ClusterSchedulerConfig"))


def test_a_stack_without_a_change_set_fails_at_the_resource(stacks: Any) -> None:
    stacks.create_stack(StackName="late", TemplateBody=body("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", Nope=1))
    while stacks.describe_stacks(StackName="late")["Stacks"][0]["StackStatus"].endswith("_IN_PROGRESS"):
        pass

    reasons = [
        event.get("ResourceStatusReason", "") for event in stacks.describe_stack_events(StackName="late")["StackEvents"]
    ]

    assert (
        "Properties validation failed for resource Thing with message:\n[#: extraneous key [Nope] is not permitted]"
        in reasons
    )
