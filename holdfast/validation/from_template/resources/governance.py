"""Reader of task governance: the policy of a cluster, and the quotas of its teams."""

from typing import Any

from holdfast.validation.cloudformation import Node, Resource, Values, required
from holdfast.validation.model import Governance, PriorityClass, Quota, TeamQuota

POLICY, QUOTA = "AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"


class GovernanceReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def governance(self, hyperpod: Resource | None) -> Governance | None:
        """Policy and quotas of a cluster; of all clusters without one."""
        policies, quotas = self._of(POLICY, hyperpod), self._of(QUOTA, hyperpod)
        if not policies and not quotas:
            return None
        first = (policies or quotas)[0].path
        fair = [self._fair_share(each) for each in policies]
        return Governance(
            path=first,
            places={
                "fair_share": f"{first}.SchedulerConfig.FairShare",
                "priority_classes": f"{first}.SchedulerConfig.PriorityClasses",
            },
            fair_share=fair[0] if fair else None,
            priority_classes=tuple(each for policy in policies for each in self._classes(policy)),
            teams=tuple(self._team(each) for each in quotas),
        )

    def _of(self, kind: str, hyperpod: Resource | None) -> list[Resource]:
        if hyperpod is None:
            return list(self._values.graph.of_type(kind))
        return list(self._values.linked([kind], ["ClusterArn"], hyperpod).found)

    def _fair_share(self, policy: Resource) -> Any:
        return self._values.properties(policy).get("SchedulerConfig", "FairShare").text() != "Disabled"

    def _classes(self, policy: Resource) -> list[PriorityClass]:
        entries = self._values.properties(policy).get("SchedulerConfig", "PriorityClasses").items()
        return [
            PriorityClass(
                path=entry.path, places={"name": f"{entry.path}.Name"}, name=required(entry.get("Name").text())
            )
            for entry in entries or ()
        ]

    def _team(self, resource: Resource) -> TeamQuota:
        properties = self._values.properties(resource)
        target, config = properties.get("ComputeQuotaTarget"), properties.get("ComputeQuotaConfig")
        sharing = config.get("ResourceSharingConfig")
        return TeamQuota(
            path=resource.path,
            places={
                "team": f"{target.path}.TeamName",
                "weight": f"{target.path}.FairShareWeight",
                "quotas": f"{config.path}.ComputeQuotaResources",
                "sharing": f"{sharing.path}.Strategy",
                "borrow_limit": f"{sharing.path}.BorrowLimit",
                "borrow_limits": f"{sharing.path}.AbsoluteBorrowLimits",
            },
            team=required(target.get("TeamName").text()),
            weight=target.get("FairShareWeight").integer() or 0,
            quotas=_quotas(config.get("ComputeQuotaResources")),
            sharing=sharing.get("Strategy").text(),
            borrow_limit=sharing.get("BorrowLimit").integer(),
            borrow_limits=_quotas(sharing.get("AbsoluteBorrowLimits")),
        )


def _quotas(node: Node) -> tuple[Quota, ...]:
    return tuple(
        Quota(
            path=entry.path,
            places={
                "instance_type": f"{entry.path}.InstanceType",
                "count": f"{entry.path}.Count",
                "partition": f"{entry.path}.AcceleratorPartition.Type",
            },
            instance_type=required(entry.get("InstanceType").text()),
            count=entry.get("Count").integer(),
            partition=entry.get("AcceleratorPartition", "Type").text(),
        )
        for entry in node.items() or ()
    )
