"""What a security reviewer asks of every environment's template."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judging import schema_errors

from holdfast.config import load

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "__snapshots__" / "test_environments"
REVIEWED = "test_the_template_is_what_was_reviewed"
NAMES = sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))


@pytest.fixture(scope="module")
def templates() -> dict[str, dict[str, Any]]:
    """By environment: its template as recorded, which ``test_environments`` compares with a synthesis."""
    return {name: json.loads((RECORDED / f"{REVIEWED}[{name}].json").read_text()) for name in NAMES}


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
def test_no_property_is_wrong_by_its_resource_schema(name: str, templates: dict[str, dict[str, Any]]) -> None:
    region = load(ROOT / "environments" / f"{name}.yaml").region

    assert list(schema_errors(templates[name], region)) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_role_may_do_everything_anywhere_or_everything_of_a_service(
    name: str, templates: dict[str, dict[str, Any]]
) -> None:
    actions = [a for s in statements(templates[name]) if s["Effect"] == "Allow" for a in as_list(s["Action"])]

    assert actions
    assert [action for action in actions if action == "*" or action.endswith(":*")] == []


@pytest.mark.parametrize("name", NAMES)
def test_buckets_are_private_encrypted_and_take_tls_only(name: str, templates: dict[str, dict[str, Any]]) -> None:
    template = templates[name]
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
def test_no_security_group_lets_the_internet_in(name: str, templates: dict[str, dict[str, Any]]) -> None:
    template = templates[name]
    rules = [
        r for _, group in resources(template, "AWS::EC2::SecurityGroup") for r in group.get("SecurityGroupIngress", [])
    ]
    rules += [rule for _, rule in resources(template, "AWS::EC2::SecurityGroupIngress")]

    assert [rule for rule in rules if rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0"] == []


def test_a_key_of_ones_own_encrypts_everything_that_takes_one(templates: dict[str, dict[str, Any]]) -> None:
    template = templates["full"]
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
