"""Task governance of an environment file."""

from typing import Any

from holdfast.catalog import QUOTA, SCHEDULER
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.translation import compute_quota, scheduler_config


def governance_of(file: Settings, *, name: str, cluster_arn: Any) -> dict[str, Any]:
    """Resources: policy and quotas. Priority classes without a policy are in one that has nothing else."""
    settings = None if file.eks is None else file.eks.task_governance
    if settings is None:
        return {}
    found = {}
    if settings.policy or settings.priority_classes:
        fair_share = settings.fair_share if settings.policy else None
        policy = scheduler_config(settings, name=name, cluster_arn=cluster_arn, fair_share=fair_share)
        found["Policy"] = {"Type": SCHEDULER, "Properties": policy}
    for index, team in enumerate(() if settings.teams is UNRESOLVED else settings.teams):
        found[f"Team{index}"] = {"Type": QUOTA, "Properties": compute_quota(team, cluster_arn=cluster_arn)}
    return found
