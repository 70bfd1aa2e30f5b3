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
    return settings.item(
        Governance,
        fair_share=settings.fair_share if settings.policy else None,
        priority_classes=classes if classes is UNRESOLVED else tuple(each.item(PriorityClass) for each in classes),
        teams=teams if teams is UNRESOLVED else tuple(_team(each) for each in teams),
    )


def _team(team: Settings) -> TeamQuota:
    quotas = team.quota
    return team.item(
        TeamQuota,
        places={
            **team.places_in(TeamQuota),
            **team.places(team="name", quotas="quota", borrow_limit="borrow_limit_percent"),
        },
        team=team.name,
        quotas=quotas if quotas is UNRESOLVED else tuple(_quota(each) for each in quotas),
        borrow_limit=team.borrow_limit_percent,
    )


def _quota(quota: Settings) -> Quota:
    return quota.item(
        Quota,
        places={**quota.places_in(Quota), "count": quota.at("instance_count")},
        count=quota.instance_count,
    )
