"""Lookups for rules about policies: roles, grants, and resources of actions."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Node
from holdfast.validation.iam import (
    ROLE,
    Grant,
    grants_in,
)
from holdfast.validation.model import App

HYPERPOD_IAM = "SageMaker developer guide, 'AWS Identity and Access Management for SageMaker HyperPod'"
IAM = "IAM user guide"
MISSPELT = 2
"""Letters by which a misspelt name differs from the one that was meant."""


def all_grants(app: App) -> Iterator[Grant]:
    """Statements of all policy documents, without trust policies."""
    if "grants" not in app.memo:
        app.memo["grants"] = [grant for node in documents(app) for grant in grants_in(node)]
    yield from app.memo["grants"]


def documents(app: App) -> Iterator[Node]:
    for _resource, node in app.each(ROLE, "AWS::IAM::User", "AWS::IAM::Group"):
        yield from (entry.get("PolicyDocument") for entry in node.get("Policies").items() or ())
    for _resource, node in app.each(
        "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy", "AWS::S3::BucketPolicy",
        "AWS::EC2::VPCEndpoint", "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy",
    ):  # fmt: skip
        yield node.get("PolicyDocument")
    for _resource, node in app.each("AWS::KMS::Key"):
        yield node.get("KeyPolicy")
