"""One template per environment. What is meant is asserted in tests/unit; here drift is noticed."""

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from holdfast.config import load
from stacks import HyperPodStack

ENVIRONMENTS = ("local", "slurm-p5")
CONTENT_HASH = re.compile(r"[0-9a-f]{64}|(?<=lifecycle/)[0-9a-f]{16}|[0-9a-f]{16}(?=\.zip)|(?<=cr-owned:lifecycle/)\w+")

STATEFUL = {
    "AWS::FSx::FileSystem": "LustreF8935BA0",
    "AWS::Logs::LogGroup": "Events948F067E",
    "AWS::SageMaker::Cluster": "ClusterEB0386A7",
    "AWS::EC2::VPC": "Network6E62CE96",
}
"""A contract: another id replaces the resource, and with it what it holds."""


@pytest.fixture(scope="module")
def templates(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    root = Path(__file__).parents[2]
    context = json.loads((root / "cdk.json").read_text())["context"]
    found = {}
    for name in ENVIRONMENTS:
        environment = load(root / "environments" / f"{name}.yaml")
        app = cdk.App(context=context, analytics_reporting=False)
        stack = HyperPodStack(app, environment.stack_name, environment=environment)
        found[name] = assertions.Template.from_stack(stack).to_json()
    return found


def scrub(node: Any) -> Any:
    """Without content hashes, so that a changed script does not change every snapshot."""
    if isinstance(node, dict):
        return {scrub(key): scrub(value) for key, value in node.items()}
    if isinstance(node, list):
        return [scrub(item) for item in node]
    return CONTENT_HASH.sub("HASH", node) if isinstance(node, str) else node


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_template_is_what_was_reviewed(
    name: str, templates: dict[str, dict[str, Any]], snapshot: SnapshotAssertion
) -> None:
    assert scrub(templates[name]) == snapshot.use_extension(JSONSnapshotExtension)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_stateful_resources_keep_their_logical_ids(name: str, templates: dict[str, dict[str, Any]]) -> None:
    resources = templates[name]["Resources"]

    for kind, logical_id in STATEFUL.items():
        assert [key for key, resource in resources.items() if resource["Type"] == kind] == [logical_id]
    buckets = [key for key, resource in resources.items() if resource["Type"] == "AWS::S3::Bucket"]
    assert buckets == ["Data2D4B752F", "LifecycleF93AE699"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_outputs_are_the_ones_that_others_read(name: str, templates: dict[str, dict[str, Any]]) -> None:
    assert sorted(templates[name]["Outputs"]) == [
        "ClusterArn",
        "ClusterName",
        "DataBucketName",
        "EventsLogGroupName",
        "FileSystemId",
        "LifecycleBucketName",
        "VpcId",
    ]


def test_only_the_embedded_environment_names_stand_ins(templates: dict[str, dict[str, Any]]) -> None:
    tags = {name: templates[name]["Resources"]["ClusterEB0386A7"]["Properties"]["Tags"] for name in ENVIRONMENTS}

    assert {tag["Key"]: tag["Value"] for tag in tags["local"]} == {
        "holdfast:environment": "local",
        "holdfast:stand-in:efa": "ethernet",
        "holdfast:stand-in:gpu": "cpu",
        "holdfast:stand-in:image": "python-environment",
        "holdfast:stand-in:lustre": "directory",
    }
    assert [tag["Key"] for tag in tags["slurm-p5"]] == ["holdfast:environment"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_cfn_lint_finds_nothing(name: str, templates: dict[str, dict[str, Any]]) -> None:
    from cfnlint.api import ManualArgs, lint

    accepted = {
        "W3005",  # the CDK expands a dependency on a construct to all in it, also to what a Ref names anyway
        "W3010",  # the zone is part of the environment file, on purpose
    }
    findings = lint(json.dumps(templates[name]), config=ManualArgs(regions=["us-west-2"]))

    assert [str(finding) for finding in findings if finding.rule.id not in accepted] == []
