"""Reader of task governance: the policy of a cluster, and the quotas of its teams."""

from holdfast.catalog import QUOTA, SCHEDULER
from holdfast.validation.cloudformation import Resource, Values
from holdfast.validation.model import Governance, TeamQuota
from holdfast.validation.readers.properties import read_item


class GovernanceReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def governance(self, hyperpod: Resource | None) -> Governance | None:
        """Policy and quotas of a cluster; of all clusters without one."""
        policies, quotas = self._of(SCHEDULER, hyperpod), self._of(QUOTA, hyperpod)
        if not policies and not quotas:
            return None
        first = self._values.properties((policies or quotas)[0])
        teams = tuple(read_item(TeamQuota, self._values.properties(each)) for each in quotas)
        return read_item(Governance, first, teams=teams)

    def _of(self, kind: str, hyperpod: Resource | None) -> list[Resource]:
        if hyperpod is None:
            return list(self._values.graph.of_type(kind))
        return list(self._values.linked([kind], ["ClusterArn"], hyperpod).found)
