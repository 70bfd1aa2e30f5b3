"""AMI upgrades of a cluster by UpdateClusterSoftware: plan, progress, end state."""

from holdfast.cli.upgrading.driving import upgrade_groups
from holdfast.cli.upgrading.gathering import gather
from holdfast.cli.upgrading.plan import (
    GroupFacts,
    JobFacts,
    NodeFacts,
    Request,
    Situation,
    jobs_of,
    plan_of,
    problems_of,
)
from holdfast.cli.upgrading.words import GroupEnd, end_of, plan_lines

__all__ = [
    "GroupEnd",
    "GroupFacts",
    "JobFacts",
    "NodeFacts",
    "Request",
    "Situation",
    "end_of",
    "gather",
    "jobs_of",
    "plan_lines",
    "plan_of",
    "problems_of",
    "upgrade_groups",
]
