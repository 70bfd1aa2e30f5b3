"""What CloudFormation refuses before it makes anything, and how it tells."""

import contextlib
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
def reach(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    home: Path = tmp_path_factory.mktemp("cloud")
    with serve(home=home, hyperpod="simulated", skip_waits=True) as aws:
        yield aws.client_arguments


@pytest.fixture(scope="module")
def stacks(reach: dict[str, str]) -> Iterator[Any]:
    with contextlib.closing(boto3.client("cloudformation", region_name=REGION, **reach)) as client:
        yield client


@pytest.fixture(scope="module")
def logs(reach: dict[str, str]) -> Iterator[Any]:
    with contextlib.closing(boto3.client("logs", region_name=REGION, **reach)) as client:
        yield client


def settled(stacks: Any, name: str) -> str:
    while True:
        status = str(stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
        if not status.endswith("_IN_PROGRESS"):
            return status


def refused(stacks: Any, name: str, template: str) -> tuple[str, dict[str, Any]]:
    """Why the change set of a new stack failed, and its event."""
    named = {"StackName": name, "ChangeSetName": "first"}
    made = stacks.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template)
    described = stacks.describe_change_set(**named)
    (event,) = stacks.describe_events(ChangeSetName=made["Id"])["OperationEvents"]
    assert described["Status"] == "FAILED"
    return str(described["StatusReason"]), event


def kept_group(name: str, policy: str) -> str:
    thing = {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": policy, "Properties": {"LogGroupName": name}}
    return json.dumps({"Resources": {"Thing": thing}})


def body(kind: str, **properties: Any) -> str:
    return json.dumps({"Resources": {"Thing": {"Type": kind, "Properties": properties}}})


def test_a_change_set_fails_for_properties_that_are_wrong_and_events_tell_which(stacks: Any) -> None:
    template = body("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", Nope=1)

    reason, event = refused(stacks, "early", template)

    assert "[AWS::EarlyValidation::PropertyValidation]" in reason
    assert (event["EventType"], event["LogicalResourceId"]) == ("VALIDATION_ERROR", "Thing")
    assert event["ValidationStatusReason"] == "#: extraneous key [Nope] is not permitted"
    assert event["ValidationPath"] == "/Resources/Thing/Properties"


def test_a_change_set_fails_for_a_name_that_exists(stacks: Any, logs: Any) -> None:
    logs.create_log_group(logGroupName="/taken")
    template = body("AWS::Logs::LogGroup", LogGroupName="/taken")

    reason, event = refused(stacks, "second", template)

    assert "[AWS::EarlyValidation::ResourceExistenceCheck]" in reason
    assert event["ValidationName"] == "NAME_CONFLICT_VALIDATION"
    assert (
        event["ValidationStatusReason"]
        == "Resource of type 'AWS::Logs::LogGroup' with identifier '/taken' already exists."
    )


@pytest.mark.parametrize(("policy", "status"), [("RetainExceptOnCreate", "CREATE_COMPLETE"), ("Delete", "FAILED")])
def test_what_outlives_its_stack_is_imported_where_that_is_asked_for(
    stacks: Any, logs: Any, policy: str, status: str
) -> None:
    group = f"/kept/{policy}"
    logs.create_log_group(logGroupName=group)
    template = kept_group(group, policy)
    named = {"StackName": f"import-{policy}", "ChangeSetName": "first"}

    stacks.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template, ImportExistingResources=True)

    assert stacks.describe_change_set(**named)["Status"] == status


def test_an_imported_resource_stays_when_the_creation_of_its_stack_fails(stacks: Any, logs: Any) -> None:
    logs.create_log_group(logGroupName="/kept/by-all")
    template = json.loads(kept_group("/kept/by-all", "RetainExceptOnCreate"))
    template["Resources"]["Wrong"] = {
        "Type": "AWS::EC2::Subnet",
        "DependsOn": "Thing",
        "Properties": {"VpcId": "vpc-none", "CidrBlock": "10.0.0.0/24"},
    }
    named = {"StackName": "fails", "ChangeSetName": "first"}

    stacks.create_change_set(
        **named, ChangeSetType="CREATE", TemplateBody=json.dumps(template), ImportExistingResources=True
    )
    (change, _) = stacks.describe_change_set(**named)["Changes"]
    stacks.execute_change_set(**named)
    ended = settled(stacks, "fails")
    events = stacks.describe_stack_events(StackName="fails")["StackEvents"]

    assert change["ResourceChange"]["Action"] == "Import"
    assert "IMPORT_COMPLETE" in {one["ResourceStatus"] for one in events if one["LogicalResourceId"] == "Thing"}
    assert ended == "ROLLBACK_COMPLETE"
    assert logs.describe_log_groups(logGroupNamePrefix="/kept/by-all")["logGroups"]


def test_a_resource_of_another_stack_is_not_imported(stacks: Any) -> None:
    template = kept_group("/of/another", "RetainExceptOnCreate")
    stacks.create_stack(StackName="owner", TemplateBody=template)
    assert settled(stacks, "owner") == "CREATE_COMPLETE"
    named = {"StackName": "thief", "ChangeSetName": "first"}

    stacks.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template, ImportExistingResources=True)

    assert stacks.describe_change_set(**named)["Status"] == "FAILED"


def test_a_change_set_does_not_look_for_a_secret_that_the_stack_makes(stacks: Any) -> None:
    secret = {"Type": "AWS::SecretsManager::Secret", "Properties": {"SecretString": "x"}}
    password = {"Fn::Join": ["", ["{{resolve:secretsmanager:", {"Ref": "Secret"}, ":SecretString:::}}"]]}
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": password}}
    template = json.dumps({"Resources": {"Secret": secret, "Parameter": parameter}})
    named = {"StackName": "secret", "ChangeSetName": "first"}

    stacks.create_change_set(**named, ChangeSetType="CREATE", TemplateBody=template)

    assert stacks.describe_change_set(**named)["Status"] == "CREATE_COMPLETE"


def test_a_type_that_the_region_lacks_is_not_recognized(stacks: Any) -> None:
    with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::SageMaker::ClusterSchedulerConfig\]"):
        stacks.create_stack(StackName="elsewhere", TemplateBody=body("AWS::SageMaker::ClusterSchedulerConfig"))


def test_a_stack_without_a_change_set_fails_at_the_resource(stacks: Any) -> None:
    stacks.create_stack(StackName="late", TemplateBody=body("AWS::EC2::VPC", CidrBlock="10.0.0.0/16", Nope=1))
    settled(stacks, "late")

    reasons = [
        event.get("ResourceStatusReason", "") for event in stacks.describe_stack_events(StackName="late")["StackEvents"]
    ]

    assert (
        "Properties validation failed for resource Thing with message:\n[#: extraneous key [Nope] is not permitted]"
        in reasons
    )
