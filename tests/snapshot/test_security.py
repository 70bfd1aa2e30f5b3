"""What a security reviewer asks of every environment's template."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from judging import schema_errors
from nagging import accepted, accepted_by, nagged

from holdfast.config import load
from holdfast_stacks import HyperPodStack

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], list[tuple[str, str]]]]:
    """By environment: its template, and what cdk-nag objects to."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    found = {}
    for name in NAMES:
        environment = load(ROOT / "environments" / f"{name}.yaml")
        app = cdk.App(context=context, analytics_reporting=False, outdir=str(tmp_path_factory.mktemp(name)))
        HyperPodStack(app, environment.stack_name, environment=environment)
        assembly, objections = nagged(app)
        template = json.loads((assembly / f"{environment.stack_name}.template.json").read_text())
        found[name] = (template, objections)
    return found


def resources(template: dict[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield name, resource.get("Properties", {})


def statements(template: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every statement of every role's policies."""
    for _, role in resources(template, "AWS::IAM::Role"):
        for policy in role.get("Policies", ()):
            yield from policy["PolicyDocument"]["Statement"]
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for _, policy in resources(template, kind):
            yield from policy["PolicyDocument"]["Statement"]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", NAMES)
def test_every_objection_of_cdk_nag_is_accepted_with_a_reason(name: str, judged: Any) -> None:
    assert [objection for objection in judged[name][1] if accepted_by(*objection) is None] == []


def test_every_accepted_objection_is_one_that_is_made(judged: Any) -> None:
    used = {accepted_by(*objection) for _, objections in judged.values() for objection in objections}

    assert [why for _, _, why in accepted() if why not in used] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_property_is_wrong_by_its_resource_schema(name: str, judged: Any) -> None:
    region = load(ROOT / "environments" / f"{name}.yaml").region

    assert list(schema_errors(judged[name][0], region)) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_role_may_do_everything_anywhere_or_everything_of_a_service(name: str, judged: Any) -> None:
    actions = [a for s in statements(judged[name][0]) if s["Effect"] == "Allow" for a in as_list(s["Action"])]

    assert actions
    assert [action for action in actions if action == "*" or action.endswith(":*")] == []


@pytest.mark.parametrize("name", NAMES)
def test_buckets_are_private_encrypted_and_take_tls_only(name: str, judged: Any) -> None:
    template = judged[name][0]
    closed = {"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}
    for _, bucket in resources(template, "AWS::S3::Bucket"):
        assert {key for key, value in bucket["PublicAccessBlockConfiguration"].items() if value} == closed
        assert bucket["BucketEncryption"]
    policies = [json.dumps(policy) for _, policy in resources(template, "AWS::S3::BucketPolicy")]
    own = [policy for _, policy in resources(template, "AWS::S3::BucketPolicy") if isinstance(policy["Bucket"], dict)]
    assert len(own) == len(list(resources(template, "AWS::S3::Bucket")))
    assert all('"aws:SecureTransport": "false"' in policy and '"Deny"' in policy for policy in policies)
    topics = [json.dumps(policy) for _, policy in resources(template, "AWS::SNS::TopicPolicy")]
    assert len(topics) == len(list(resources(template, "AWS::SNS::Topic")))
    assert all('"aws:SecureTransport": "false"' in policy for policy in topics)


@pytest.mark.parametrize("name", NAMES)
def test_no_security_group_lets_the_internet_in(name: str, judged: Any) -> None:
    template = judged[name][0]
    rules = [
        r for _, group in resources(template, "AWS::EC2::SecurityGroup") for r in group.get("SecurityGroupIngress", [])
    ]
    rules += [rule for _, rule in resources(template, "AWS::EC2::SecurityGroupIngress")]

    assert [rule for rule in rules if rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0"] == []


def test_a_key_of_ones_own_encrypts_everything_that_takes_one(judged: Any) -> None:
    template = judged["full"][0]
    key = next(name for name, _ in resources(template, "AWS::KMS::Key"))
    for kind in (
        "AWS::S3::Bucket",
        "AWS::Logs::LogGroup",
        "AWS::FSx::FileSystem",
        "AWS::SNS::Topic",
        "AWS::EKS::Cluster",
    ):
        for name, properties in resources(template, kind):
            if not name.startswith("Lifecycle"):  # scripts, made again by each deployment
                assert key in json.dumps(properties), name
