"""Properties of task governance: the policy of a cluster, and the quotas of its teams."""

from typing import Any

from holdfast.validation.cloudformation import Properties
from holdfast.validation.model import Governance, TeamQuota
from holdfast.validation.translation.properties import properties_of


def scheduler_config(
    described: object = None, *, name: str, cluster_arn: Any, fair_share: Any, **others: Any
) -> Properties:
    fair = {True: "Enabled", False: "Disabled"}.get(fair_share, fair_share)
    found = properties_of(Governance, described, fair_share=fair, **others)
    found.put(["Name"], name)
    found.put(["ClusterArn"], cluster_arn)
    return found


def compute_quota(team: Any, *, cluster_arn: Any) -> Properties:
    """``team``: has the attributes of ``model.TeamQuota``."""
    found = properties_of(TeamQuota, team)
    found.put(["Name"], team.name)
    found.put(["ClusterArn"], cluster_arn)
    return found
