"""Reader of update settings: schedules, patches, batches and rollback alarms."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Reference, Values, optional, required
from holdfast.validation.model import ALARM_OF_APP, AutoPatch, RollingUpdate, ScheduledUpdate
from holdfast.validation.readers.properties import read_item

ALARM = "AWS::CloudWatch::Alarm"


class UpdateReader:
    def __init__(self, values: Values) -> None:
        self._values = values

    def scheduled_update(self, node: Node) -> ScheduledUpdate:
        return read_item(ScheduledUpdate, node, deployment=self._deployment(node))

    def auto_patch(self, node: Node) -> AutoPatch:
        return read_item(AutoPatch, node, deployment=self._deployment(node))

    def alarm_names(self) -> Any:
        """Alarms of the app, by name, or by logical id if AWS names them."""
        names = {self._alarm_name(each) for each in self._values.graph.of_type(ALARM)}
        return UNRESOLVED if UNRESOLVED in names or not self._values.graph.complete else frozenset(names)

    def _alarm_name(self, alarm: Any) -> Any:
        chosen = self._values.properties(alarm).get("AlarmName").text()
        return self._values.graph.identity(alarm) if chosen is None else chosen

    def _deployment(self, node: Node) -> Any:
        return optional(node.get("DeploymentConfig"), self._rolling)

    def _rolling(self, node: Node) -> RollingUpdate:
        return read_item(RollingUpdate, node, rollback_alarms=self._alarms(node.get("AutoRollbackConfiguration")))

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
