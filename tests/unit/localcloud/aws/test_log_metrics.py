"""Metric filters: which data points follow from log events (MonitoringLogData of the CloudWatch Logs user guide)."""

import json
from typing import Any

from holdfast.localcloud.aws.monitoring.log_metrics import LogMetrics

MINUTE_MS = 60_000


def metric_filter(pattern: str, value: str = "1", **more: Any) -> dict[str, Any]:
    transformation = {"metricNamespace": "Lab", "metricName": "Found", "metricValue": value, **more}
    return {"filterPattern": pattern, "metricTransformations": [transformation]}


def event(minute: int, **content: Any) -> dict[str, Any]:
    return {"timestamp": minute * MINUTE_MS + 999, "message": json.dumps(content)}


def published(metrics: LogMetrics) -> list[tuple[float, dict[str, float]]]:
    """Minute and statistics of each data point."""
    found = metrics.take().get("Lab", [])
    return sorted((one["Timestamp"].timestamp() / 60, one["StatisticValues"]) for one in found)


def test_events_of_a_minute_become_one_data_point() -> None:
    metrics = LogMetrics()
    metrics.read([metric_filter("{ $.kind = x }")], [event(1, kind="x"), event(1, kind="x"), event(1, kind="y")])
    metrics.read([metric_filter("{ $.kind = x }")], [event(1, kind="x"), event(2, kind="x")])

    assert published(metrics) == [
        (1, {"SampleCount": 3, "Sum": 3, "Minimum": 1, "Maximum": 1}),
        (2, {"SampleCount": 1, "Sum": 1, "Minimum": 1, "Maximum": 1}),
    ]


def test_what_was_published_is_not_published_again() -> None:
    metrics = LogMetrics()
    metrics.read([metric_filter("")], [event(1)])
    assert len(published(metrics)) == 1
    assert published(metrics) == []


def test_the_value_comes_from_the_event_and_one_without_it_is_left_out() -> None:
    metrics = LogMetrics()
    metrics.read([metric_filter("", "$.size")], [event(1, size=4), event(1, size=6), event(1), event(1, size="x")])
    assert published(metrics) == [(1, {"SampleCount": 2, "Sum": 10, "Minimum": 4, "Maximum": 6})]


def test_the_default_value_is_for_minutes_with_events_of_which_none_matches() -> None:
    metrics = LogMetrics()
    only_x = metric_filter("{ $.kind = x }", defaultValue=0)
    metrics.read([only_x], [event(1, kind="y"), event(2, kind="x"), event(2, kind="y")])

    assert [(minute, values["Sum"]) for minute, values in published(metrics)] == [(1, 0), (2, 1)]


def test_dimensions_come_from_the_event() -> None:
    metrics = LogMetrics()
    by_node = metric_filter("", dimensions={"Node": "$.node.name"})
    metrics.read([by_node], [event(1, node={"name": "a"}), event(1, node={"name": "b"}), event(1, node={})])

    assert [one["Dimensions"] for one in metrics.take()["Lab"]] == [
        [{"Name": "Node", "Value": "a"}],
        [{"Name": "Node", "Value": "b"}],
    ]
