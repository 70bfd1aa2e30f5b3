"""
False findings of the CDK's validator, whose registry copy is older than CloudFormation's.

A setting's is acknowledged only on clusters that use it. A test verifies that the newer schema of the pinned cfn-lint
allows it, and fails when the validator no longer reports it; these are of aws-cdk-lib 2.275. What CloudFormation's
schema refuses is never here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aws_cdk import Acknowledgment, CfnResource, Validations

from holdfast_constructs.groups import InstanceGroup


@dataclass(frozen=True, kw_only=True)
class _Gap:
    rule: str
    reason: str
    is_used: Callable[[InstanceGroup], bool]


GAPS = (
    _Gap(
        rule="F3002",
        reason="ImageReleaseVersion is a property of groups (resource schema of 2026-10-20; CfnCluster has it too)",
        is_used=lambda group: group.image_release_version is not None,
    ),
    _Gap(
        rule="E1152",
        reason="ImageId may be 'default': its pattern in the resource schema allows it",
        is_used=lambda group: group.image_id == "default",
    ),
)
REGION_OF_TYPE = "E3644"
"""HF032 judges it, with a newer list, and can be suppressed where that is old too."""
QUOTA_GAP = "F3006"
"""AWS::SageMaker::ComputeQuota is not in the validator's copy of the registry; a rule of ours judges its regions."""


def acknowledge_new_type(resource: CfnResource) -> None:
    """Acknowledge a resource type that the validator does not know yet."""
    reason = f"{resource.cfn_resource_type} is newer than the validator's copy of the registry (schemas of 2026-10-20)"
    Validations.of(resource).acknowledge(Acknowledgment(id=f"CloudFormation-Validate::{QUOTA_GAP}", reason=reason))


def acknowledge_schema_gaps(resource: CfnResource, groups: Sequence[InstanceGroup]) -> None:
    """Acknowledge what the validator does not know yet of these groups."""
    reason = "HF032 judges the regions of instance types"
    Validations.of(resource).acknowledge(Acknowledgment(id=f"CloudFormation-Validate::{REGION_OF_TYPE}", reason=reason))
    for gap in GAPS:
        if any(gap.is_used(group) for group in groups):
            known = Acknowledgment(id=f"CloudFormation-Validate::{gap.rule}", reason=gap.reason)
            Validations.of(resource).acknowledge(known)
