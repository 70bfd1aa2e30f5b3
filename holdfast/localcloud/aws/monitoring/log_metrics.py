"""
Metric filters: log events become data points, one for each metric and minute, published once a minute.

Source: CloudWatch Logs user guide, "Creating metrics from log events using filters" (MonitoringLogData, read
2026-11-23): values, default value, dimensions. Assumed: a data point has the time of its log event.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from holdfast.localcloud.aws.monitoring.filter_patterns import (
    FilterPatternError,
    LogEvent,
    number_at,
    parse_pattern,
    text_at,
    to_number,
)

MINUTE_S = 60
MOST_PENDING = 10_000

_Key = tuple[str, str, tuple[tuple[str, str], ...], str, int]
"""Namespace, name, dimensions, unit, and the beginning of the minute in seconds since 1970."""


@dataclass
class _Sum:
    count: float = 0.0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)


class LogMetrics:
    """Unpublished matches of metric filters. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[_Key, _Sum] = {}
        self._defaults: dict[_Key, float] = {}

    def read(self, filters: Iterable[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> None:
        read = [(_minute(event), LogEvent(event["message"])) for event in events]
        for one in filters:
            try:
                matches = parse_pattern(one.get("filterPattern") or "")
            except FilterPatternError:
                continue
            for minute, event in read:
                holds = matches(event)
                for transformation in one["metricTransformations"]:
                    self._count(transformation, event, minute, holds=holds)

    def take(self) -> dict[str, list[dict[str, Any]]]:
        """Return the new data points by namespace, as PutMetricData takes them."""
        with self._lock:
            pending, defaults = self._pending, self._defaults
            self._pending, self._defaults = {}, {}
        for key, value in defaults.items():
            if key not in pending:
                pending[key] = _Sum(count=1, total=value, least=value, most=value)
        found: dict[str, list[dict[str, Any]]] = {}
        for (namespace, name, dimensions, unit, minute), values in pending.items():
            found.setdefault(namespace, []).append(
                {
                    "MetricName": name,
                    "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions],
                    "Unit": unit,
                    "Timestamp": datetime.fromtimestamp(minute, tz=UTC),
                    "StatisticValues": {
                        "SampleCount": values.count,
                        "Sum": values.total,
                        "Minimum": values.least,
                        "Maximum": values.most,
                    },
                }
            )
        return found

    def _count(self, transformation: Mapping[str, Any], event: LogEvent, minute: int, *, holds: bool) -> None:
        namespace, name = transformation["metricNamespace"], transformation["metricName"]
        unit = transformation.get("unit") or "None"
        given = transformation.get("dimensions") or {}
        if not holds:
            default = transformation.get("defaultValue")
            if default is not None and not given:
                with self._lock:
                    self._defaults[namespace, name, (), unit, minute] = float(default)
            return
        value, dimensions = _value(transformation["metricValue"], event), _dimensions(given, event)
        if value is None or dimensions is None:
            return
        key = (namespace, name, dimensions, unit, minute)
        with self._lock:
            if key in self._pending or len(self._pending) < MOST_PENDING:
                self._pending.setdefault(key, _Sum()).add(value)


def _minute(event: Mapping[str, Any]) -> int:
    return int(event["timestamp"]) // 1000 // MINUTE_S * MINUTE_S


def _value(given: str, event: LogEvent) -> float | None:
    return number_at(event, given) if given.startswith("$") else to_number(given)


def _dimensions(given: Mapping[str, str], event: LogEvent) -> tuple[tuple[str, str], ...] | None:
    found = [(name, text_at(event, selector)) for name, selector in sorted(given.items())]
    values = tuple((name, value) for name, value in found if value is not None)
    return values if len(values) == len(found) else None
