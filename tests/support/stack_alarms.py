"""The alarms of a template as the embedded CloudWatch evaluates them, minute by minute, without server or clock."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from moto.cloudwatch.models import Alarm

from holdfast.localcloud.aws.monitoring.evaluation import Evaluation

REGION, ACCOUNT = "us-west-2", "111122223333"
NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """A log event in a minute."""

    minute: int
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Datum:
    """A value that a service publishes for a minute."""

    minute: int
    namespace: str
    name: str
    value: float
    dimensions: tuple[tuple[str, str], ...] = ()


Feed = Sequence[Line | Datum]


class _Clients:
    """What the evaluation calls: data points are kept, notices are counted."""

    def __init__(self, metric_data: list[Any]) -> None:
        self._metric_data = metric_data
        self.told: list[tuple[str, str, str]] = []
        """Topic, alarm and its new state."""

    def __call__(self, service: str) -> Any:
        return self

    def put_metric_data(self, *, Namespace: str, MetricData: Sequence[Mapping[str, Any]]) -> None:  # noqa: N803
        for one in MetricData:
            values = one["StatisticValues"]
            self._metric_data.append(
                SimpleNamespace(
                    namespace=Namespace,
                    name=one["MetricName"],
                    dimensions=_dimensions(one["Dimensions"]),
                    unit=one["Unit"],
                    timestamp=one["Timestamp"],
                    sample_count=values["SampleCount"],
                    sum=values["Sum"],
                    min=values["Minimum"],
                    max=values["Maximum"],
                )
            )

    def publish(self, *, TopicArn: str, Message: str, **_: Any) -> None:  # noqa: N803
        message = json.loads(Message)
        self.told.append((TopicArn, message["AlarmName"], message["NewStateValue"]))

    def put_events(self, **_: Any) -> None: ...


class StackAlarms:
    """All alarms of a template and its metric filters; ``states`` has what became of one."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        resources = list(template["Resources"].values())
        self.alarms = {
            one["Properties"]["AlarmName"].rpartition("-")[2]: one["Properties"]
            for one in resources
            if one["Type"] == "AWS::CloudWatch::Alarm"
        }
        self.composites = [one for one in resources if one["Type"] == "AWS::CloudWatch::CompositeAlarm"]
        self._filters = [
            {
                "filterPattern": one["Properties"]["FilterPattern"],
                "metricTransformations": [_lower(each) for each in one["Properties"]["MetricTransformations"]],
            }
            for one in resources
            if one["Type"] == "AWS::Logs::MetricFilter"
        ]

    def states(self, name: str, feed: Feed, *, minutes: int) -> tuple[list[str], list[tuple[str, str, str]]]:
        """State of one alarm at the end of each minute, and the notices of it."""
        alarm = _alarm(self.alarms[name])
        backend = SimpleNamespace(alarms={alarm.name: alarm}, metric_data=[])
        clients = _Clients(backend.metric_data)
        evaluation = _Offline(backend, client=clients)
        found = []
        for minute in range(minutes):
            began = NOON + timedelta(minutes=minute)
            lines = [one for one in feed if isinstance(one, Line) and one.minute == minute]
            stamp = int((began + timedelta(seconds=30)).timestamp() * 1000)
            events = [{"timestamp": stamp, "message": json.dumps(one.content)} for one in lines]
            evaluation.log_metrics.read(self._filters, events)
            for one in feed:
                if isinstance(one, Datum) and one.minute == minute:
                    backend.metric_data.append(_published(one, began))
            evaluation.minute(began + timedelta(seconds=65))
            found.append(alarm.state_value)
        return found, clients.told


class _Offline(Evaluation):
    def __init__(self, backend: Any, *, client: Callable[[str], Any]) -> None:
        super().__init__(client=client, account=ACCOUNT, region=REGION, in_moto=lambda _: nullcontext())
        self._known = backend

    def _backend(self) -> Any:
        return self._known


def _published(one: Datum, began: datetime) -> Any:
    dimensions = [{"Name": name, "Value": value} for name, value in one.dimensions]
    return SimpleNamespace(
        namespace=one.namespace,
        name=one.name,
        dimensions=_dimensions(dimensions),
        unit=None,
        timestamp=began,
        value=one.value,
    )


def _alarm(properties: Mapping[str, Any]) -> Alarm:
    """As moto keeps it."""
    found: Any = {"datapoints_to_alarm": None, "unit": None, "statistic": None, "period": None}
    found.update({"namespace": None, "metric_name": None, "extended_statistic": None, "rule": None})
    found.update({"evaluate_low_sample_count_percentile": None, "threshold_metric_id": None})
    names = {
        "AlarmName": "name", "Namespace": "namespace", "MetricName": "metric_name", "Statistic": "statistic",
        "Period": "period", "EvaluationPeriods": "evaluation_periods", "DatapointsToAlarm": "datapoints_to_alarm",
        "Threshold": "threshold", "ComparisonOperator": "comparison_operator", "AlarmDescription": "description",
        "TreatMissingData": "treat_missing_data",
    }  # fmt: skip
    found.update({names[key]: value for key, value in properties.items() if key in names})
    made = Alarm(
        account_id=ACCOUNT,
        region_name=REGION,
        metric_data_queries=[],
        dimensions=[{"Name": one["Name"], "Value": _text(one["Value"])} for one in properties.get("Dimensions", ())],
        alarm_actions=[_topic(one) for one in properties.get("AlarmActions", ())],
        ok_actions=[_topic(one) for one in properties.get("OKActions", ())],
        insufficient_data_actions=[],
        actions_enabled=True,
        **found,
    )
    made.metric_data_queries = [_query(one) for one in properties.get("Metrics", ())]
    return made


def _query(given: Mapping[str, Any]) -> Any:
    stat = given.get("MetricStat")
    metric = None
    if stat is not None:
        what = stat["Metric"]
        metric = SimpleNamespace(
            metric=SimpleNamespace(
                namespace=what["Namespace"],
                metric_name=what["MetricName"],
                dimensions=_dimensions(what.get("Dimensions", ())),
            ),
            period=stat["Period"],
            stat=stat["Stat"],
            unit=stat.get("Unit"),
        )
    return SimpleNamespace(
        id=given["Id"],
        expression=given.get("Expression"),
        metric_stat=metric,
        period=given.get("Period"),
        return_data=given.get("ReturnData", True),
    )


def _dimensions(given: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [SimpleNamespace(name=one["Name"], value=_text(one["Value"])) for one in given]


def _text(value: Any) -> str:
    """What a reference would be: one text for all, where only one resource can be meant."""
    return value if isinstance(value, str) else "referred-to"


def _topic(value: Any) -> str:
    return f"arn:aws:sns:{REGION}:{ACCOUNT}:alerts" if isinstance(value, Mapping) else str(value)


def _lower(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key[0].lower() + key[1:]: value for key, value in given.items()}
