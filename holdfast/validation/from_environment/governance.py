"""Task governance of an environment file."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import Governance, PriorityClass, Quota, TeamQuota


def governance(file: Settings) -> Any:
    settings = None if file.eks is None else file.eks.task_governance
    if settings is None:
        return None
    teams, classes = settings.teams, settings.priority_classes
    return Governance(
        path=settings.path,
        places=settings.places(fair_share="fair_share", priority_classes="priority_classes"),
        fair_share=settings.fair_share if settings.policy else None,
        priority_classes=classes
        if classes is UNRESOLVED
        else tuple(PriorityClass(path=each.path, places=each.places(name="name"), name=each.name) for each in classes),
        teams=teams if teams is UNRESOLVED else tuple(_team(each) for each in teams),
    )


def _team(team: Settings) -> TeamQuota:
    quotas = team.quota
    return TeamQuota(
        path=team.path,
        places=team.places(
            team="name", weight="weight", quotas="quota", sharing="sharing", borrow_limit="borrow_limit_percent"
        ),
        team=team.name,
        weight=team.weight,
        quotas=quotas if quotas is UNRESOLVED else tuple(_quota(each) for each in quotas),
        sharing=team.sharing,
        borrow_limit=team.borrow_limit_percent,
    )


def _quota(quota: Settings) -> Quota:
    return Quota(
        path=quota.path,
        places=quota.places(instance_type="instance_type", count="instance_count"),
        instance_type=quota.instance_type,
        count=quota.instance_count,
    )
