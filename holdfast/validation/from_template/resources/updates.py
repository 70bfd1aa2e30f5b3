"""Reader of update settings: schedules, patches, batches and rollback alarms."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Reference, Values, optional, required
from holdfast.validation.from_template.resources.properties import places_of, read_properties
from holdfast.validation.model import ALARM_OF_APP, AutoPatch, BatchSize, RollingUpdate, ScheduledUpdate

ALARM = "AWS::CloudWatch::Alarm"


class UpdateReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def scheduled_update(self, node: Node) -> ScheduledUpdate:
        return ScheduledUpdate(
            path=node.path,
            places=places_of(ScheduledUpdate, node.path),
            **read_properties(ScheduledUpdate, node),
            deployment=optional(node.get("DeploymentConfig"), self._rolling),
        )

    def auto_patch(self, node: Node) -> AutoPatch:
        return AutoPatch(
            path=node.path,
            places=places_of(AutoPatch, node.path),
            **read_properties(AutoPatch, node),
            deployment=optional(node.get("DeploymentConfig"), self._rolling),
        )

    def alarm_names(self) -> Any:
        """Alarms of the app, by name, or by logical id if AWS names them."""
        names = {self._alarm_name(each) for each in self._values.graph.of_type(ALARM)}
        return UNRESOLVED if UNRESOLVED in names or not self._values.graph.complete else frozenset(names)

    def _alarm_name(self, alarm: Any) -> Any:
        chosen = self._values.properties(alarm).get("AlarmName").text()
        return self._values.graph.identity(alarm) if chosen is None else chosen

    def _rolling(self, node: Node) -> RollingUpdate:
        policy = node.get("RollingUpdatePolicy")
        return RollingUpdate(
            path=node.path,
            places={
                "maximum_batch_size": f"{policy.path}.MaximumBatchSize",
                "rollback_maximum_batch_size": f"{policy.path}.RollbackMaximumBatchSize",
                "wait_interval_s": f"{node.path}.WaitIntervalInSeconds",
                "alarm_names": f"{node.path}.AutoRollbackConfiguration",
            },
            maximum_batch_size=optional(policy.get("MaximumBatchSize"), _batch),
            rollback_maximum_batch_size=optional(policy.get("RollbackMaximumBatchSize"), _batch),
            wait_interval_s=node.get("WaitIntervalInSeconds").integer(),
            alarm_names=self._alarms(node.get("AutoRollbackConfiguration")),
        )

    def _alarms(self, node: Node) -> Any:
        entries = node.items()
        names = []
        for entry in entries or ():
            name = entry.get("AlarmName")
            alarm = name.resource(ALARM)
            by_arn = isinstance(name.value, Reference) and name.value.attribute == "Arn"
            own = required(name.text()) if alarm is None else self._alarm_name(alarm)
            names.append(f"{ALARM_OF_APP}{own}" if by_arn and own is not UNRESOLVED else own)
        return UNRESOLVED if entries is None or UNRESOLVED in names else tuple(names)


def _batch(node: Node) -> BatchSize:
    return BatchSize(
        path=node.path,
        places=places_of(BatchSize, node.path),
        **read_properties(BatchSize, node),
    )
