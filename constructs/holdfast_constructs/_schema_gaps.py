"""
What the CDK's own validator finds wrong about right clusters: its copy of the registry is behind the service.

Each finding is acknowledged on clusters that use the setting, and on no other, with what allows it. To be looked at
again with every new version of aws-cdk-lib; these are of 2.275.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aws_cdk import Acknowledgment, CfnResource, Validations

from holdfast_constructs._instance_group import InstanceGroup


@dataclass(frozen=True, kw_only=True)
class _Gap:
    rule: str
    reason: str
    is_used: Callable[[InstanceGroup], bool]


_GAPS = (
    _Gap(
        rule="F3002",
        reason="ImageReleaseVersion is a property of groups: CfnCluster has it too",
        is_used=lambda group: group.image_release_version is not None,
    ),
    _Gap(
        rule="E1152",
        reason="ImageId may be 'default' (SageMaker API, ClusterInstanceGroupSpecification)",
        is_used=lambda group: group.image_id == "default",
    ),
    _Gap(
        rule="W3030",
        reason="MultiNodeTrainingValidation is a check (SageMaker API, DeepHealthCheckType)",
        is_used=lambda group: "MultiNodeTrainingValidation" in group.deep_health_checks,
    ),
)


def acknowledge_schema_gaps(resource: CfnResource, groups: Sequence[InstanceGroup]) -> None:
    """Keep the validator from calling wrong what these groups use."""
    for gap in _GAPS:
        if any(gap.is_used(group) for group in groups):
            known = Acknowledgment(id=f"CloudFormation-Validate::{gap.rule}", reason=gap.reason)
            Validations.of(resource).acknowledge(known)
