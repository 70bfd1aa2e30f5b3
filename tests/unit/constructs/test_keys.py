"""Keys by any of their names, and what differs between partitions."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from holdfast.config import load
from holdfast_constructs import key_by_name
from holdfast_stacks import HyperPodStack

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
KEY = f"arn:aws:kms:us-west-2:111122223333:key/{ID}"


def new_stack(region: str = "us-west-2") -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region=region))


@pytest.mark.parametrize("name", [ID, KEY])
def test_a_key_by_its_id_or_arn_needs_nothing_to_be_asked(name: str) -> None:
    stack = new_stack()

    arn = json.dumps(stack.resolve(key_by_name(stack, "Key", name).key_arn))

    assert arn.replace('{"Ref": "AWS::Partition"}', "aws").count(ID) == 1
    assert assertions.Template.from_stack(stack).to_json().get("Resources", {}) == {}


@pytest.mark.parametrize("name", ["alias/training", "arn:aws:kms:us-west-2:111122223333:alias/training"])
def test_an_alias_is_resolved_by_the_deployment_with_a_right_for_its_key_alone(name: str) -> None:
    stack = new_stack()
    key = key_by_name(stack, "Key", name)
    cdk.CfnOutput(stack, "Arn", value=key.key_arn)
    template = assertions.Template.from_stack(stack)
    (call,) = template.find_resources("Custom::AWS").values()
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]

    assert "DescribeKey" in json.dumps(call["Properties"]["Create"])
    assert "alias/training" in json.dumps(call["Properties"]["Create"])
    assert statement["Action"] == "kms:DescribeKey"
    assert statement["Condition"] == {"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/training"}}
    assert template.to_json()["Outputs"]["Arn"]["Value"]["Fn::GetAtt"][1] == "KeyMetadata.Arn"


@pytest.mark.parametrize("name", [ID, KEY, "alias/training", "arn:aws:kms:us-west-2:111122223333:alias/training"])
def test_an_environment_takes_all_names_of_a_key(name: str, tmp_path: Path) -> None:
    text = (ENVIRONMENTS / "minimal.yaml").read_text()
    (tmp_path / "keys.yaml").write_text(f"encryption: {{kms_key: '{name}'}}\n{text}")

    assert load(tmp_path / "keys.yaml").encryption.kms_key == name


def texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)
    elif isinstance(node, str):
        yield node


@pytest.mark.parametrize(("name", "there"), [("full", "us-east-1"), ("full-slurm", "us-west-2")])
def test_no_resource_names_the_partition_of_another_region(name: str, there: str, tmp_path: Path) -> None:
    text = (ENVIRONMENTS / f"{name}.yaml").read_text().replace(there, "eusc-de-east-1")
    (tmp_path / "sovereign.yaml").write_text(text.replace("arn:aws:", "arn:aws-eusc:"))
    environment = load(tmp_path / "sovereign.yaml")
    stack = HyperPodStack(cdk.App(), "Demo", environment=environment, folder=ENVIRONMENTS)
    resources = assertions.Template.from_stack(stack).to_json()["Resources"]

    assert [text for text in texts(resources) if "arn:aws:" in text] == []
    regional = [
        text for text in texts(resources) if re.search(r"eusc-de-east-1[.]amazonaws[.]com|[*][.]amazonaws[.]com", text)
    ]
    assert regional == []
