"""Reader of task governance: the policy of a cluster, and the quotas of its teams."""

from typing import Any

from holdfast.catalog import QUOTA, SCHEDULER
from holdfast.validation.cloudformation import Resource, Values
from holdfast.validation.model import Governance, PriorityClass, TeamQuota
from holdfast.validation.readers.properties import places_of, read_item


class GovernanceReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def governance(self, hyperpod: Resource | None) -> Governance | None:
        """Policy and quotas of a cluster; of all clusters without one."""
        policies, quotas = self._of(SCHEDULER, hyperpod), self._of(QUOTA, hyperpod)
        if not policies and not quotas:
            return None
        first = self._values.properties((policies or quotas)[0])
        fair = [self._fair_share(each) for each in policies]
        return Governance(
            path=first.path,
            places=places_of(Governance, first),
            fair_share=fair[0] if fair else None,
            priority_classes=tuple(each for policy in policies for each in self._classes(policy)),
            teams=tuple(read_item(TeamQuota, self._values.properties(each)) for each in quotas),
        )

    def _of(self, kind: str, hyperpod: Resource | None) -> list[Resource]:
        if hyperpod is None:
            return list(self._values.graph.of_type(kind))
        return list(self._values.linked([kind], ["ClusterArn"], hyperpod).found)

    def _fair_share(self, policy: Resource) -> Any:
        return self._values.properties(policy).get("SchedulerConfig", "FairShare").text() != "Disabled"

    def _classes(self, policy: Resource) -> list[PriorityClass]:
        entries = self._values.properties(policy).get("SchedulerConfig", "PriorityClasses").items()
        return [read_item(PriorityClass, entry) for entry in entries or ()]
