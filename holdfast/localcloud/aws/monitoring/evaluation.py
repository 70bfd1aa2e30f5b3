"""
Evaluation of alarms: once a minute, publish metrics of log events and set the states of metric alarms.

Source: CloudWatch user guide, "Alarm evaluation" (alarm-evaluation, read 2026-11-23): every minute, over a window that
ends with the last whole minute. States follow from ``alarm_states``. Assumed: evaluation a few seconds after the
minute; a changed alarm keeps its state until then.
"""

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import now
from holdfast.localcloud.aws.monitoring.alarm_notices import AlarmNotices
from holdfast.localcloud.aws.monitoring.alarm_states import (
    ALARM,
    FURTHER_BACK,
    INSUFFICIENT_DATA,
    MISSING,
    OPERATORS,
    STATISTICS,
    AlarmRule,
    evaluate,
)
from holdfast.localcloud.aws.monitoring.log_metrics import MINUTE_S, LogMetrics
from holdfast.localcloud.aws.monitoring.metric_math import MathError, compute

AFTER_THE_MINUTE_S = 5.0
KEPT = timedelta(days=1)
MOST_KEPT = 50_000
MOST_AT_ONCE = 500
_INITIAL = "Unchecked: Initial alarm creation"

log = logging.getLogger(__name__)


class Evaluation:
    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._client, self._account, self._region, self._in_moto = client, account, region, in_moto
        self.log_metrics = LogMetrics()
        self._lock = threading.Lock()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._notices = AlarmNotices(client=client, account=account, region=region)

    def start(self) -> None:
        """Start the thread, and evaluate new alarms at once."""
        with self._lock:
            self._wake.set()
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._work, name="alarms", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5.0)

    def minute(self, moment: datetime) -> None:
        self._publish(moment)
        end = int(moment.timestamp()) // MINUTE_S * MINUTE_S
        for alarm in self._metric_alarms():
            self._judge(alarm, end)

    def _work(self) -> None:
        while not self._stopping.is_set():
            woken = self._wake.wait((AFTER_THE_MINUTE_S - now().timestamp()) % MINUTE_S)
            self._wake.clear()
            if self._stopping.is_set():
                return
            try:
                if woken:
                    self._stopping.wait(0.2)  # moto stores the alarm after the wake-up
                    self._begin_alarms()
                else:
                    self.minute(now())
            except Exception:
                log.exception("alarms: evaluation failed; retrying in a minute")

    def _backend(self) -> Any:
        from moto.cloudwatch.models import cloudwatch_backends  # late, for start-up's sake

        return cloudwatch_backends[self._account][self._region]

    def _metric_alarms(self) -> list[Any]:
        return [alarm for alarm in list(self._backend().alarms.values()) if not alarm.rule]

    def _begin_alarms(self) -> None:
        fresh = [alarm for alarm in self._metric_alarms() if alarm.state_reason == _INITIAL and not alarm.history]
        if any(alarm.state_value != INSUFFICIENT_DATA for alarm in fresh):
            with self._in_moto("cloudwatch"):
                for alarm in fresh:
                    alarm.state_value = INSUFFICIENT_DATA

    def _publish(self, moment: datetime) -> None:
        found = self.log_metrics.take()
        if not found:
            return
        for namespace, data in found.items():
            for first in range(0, len(data), MOST_AT_ONCE):
                part = data[first : first + MOST_AT_ONCE]
                self._client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=part)
        kept = self._backend().metric_data
        oldest = (moment - KEPT).timestamp()
        if len(kept) > MOST_KEPT or _seconds(kept[0]) < oldest - KEPT.total_seconds():
            with self._in_moto("cloudwatch"):
                kept[:] = [one for one in kept if _seconds(one) >= oldest][-MOST_KEPT:]

    def _judge(self, alarm: Any, end: int) -> None:
        rule = _rule(alarm)
        if rule is None:
            return
        try:
            points = self._points(alarm, end, rule.evaluation_periods + FURTHER_BACK)
        except MathError:
            return
        state = evaluate(rule, points, current=_state(alarm))
        if state != alarm.state_value or alarm.state_reason == _INITIAL:
            data = {"version": "1.0", "recentDatapoints": [one for one in points if one is not None]}
            self._change(alarm, _reason(rule, points, state), data, state)

    def _points(self, alarm: Any, end: int, count: int) -> list[float | None]:
        if alarm.metric_data_queries:
            return self._computed(alarm, end, count)
        return self._statistics(
            namespace=alarm.namespace,
            name=alarm.metric_name,
            dimensions=[{"Name": one.name, "Value": one.value} for one in alarm.dimensions],
            statistic=alarm.statistic,
            unit=alarm.unit,
            periods=_periods(end, int(alarm.period), count),
        )

    def _computed(self, alarm: Any, end: int, count: int) -> list[float | None]:
        queries = alarm.metric_data_queries
        metrics = {query.id: query.metric_stat for query in queries if query.metric_stat is not None}
        lengths = [int(stat.period) for stat in metrics.values()] + [
            int(query.period) for query in queries if query.period
        ]
        period_s = max(lengths, default=MINUTE_S)
        periods = _periods(end, period_s, count)
        times = [start for start, _ in periods]
        series: dict[str, dict[int, float]] = {}
        for name, stat in metrics.items():
            values = self._statistics(
                namespace=stat.metric.namespace,
                name=stat.metric.metric_name,
                dimensions=[{"Name": one.name, "Value": one.value} for one in stat.metric.dimensions or []],
                statistic=stat.stat,
                unit=stat.unit,
                periods=periods,
            )
            series[name] = {time: value for time, value in zip(times, values, strict=True) if value is not None}
        result: dict[int, float] = {}
        left = [query for query in queries if query.expression]
        while left:  # an expression may name another one, in any order
            ready = [query for query in left if not any(_names(query.expression, other.id) for other in left)] or left
            for query in ready:
                series[query.id] = compute(query.expression, series=series, times=times)
            left = [query for query in left if query not in ready]
        chosen = next((query for query in queries if str(query.return_data).lower() == "true"), None)
        result = series[chosen.id] if chosen is not None else {}
        return [result.get(time) for time in times]

    def _statistics(
        self,
        *,
        namespace: str,
        name: str,
        dimensions: list[dict[str, str]],
        statistic: str,
        unit: str | None,
        periods: Sequence[tuple[int, int]],
    ) -> list[float | None]:
        first, last = periods[0][0], periods[-1][1]
        data = [
            one
            for one in list(self._backend().metric_data)
            if one.namespace == namespace
            and one.name == name
            and _same(one.dimensions, dimensions)
            and (not unit or one.unit == unit)
            and first <= _seconds(one) < last
        ]
        return [_statistic([one for one in data if start <= _seconds(one) < end], statistic) for start, end in periods]

    def _change(self, alarm: Any, reason: str, data: dict[str, Any], state: str) -> None:
        previous = _state(alarm)
        with self._in_moto("cloudwatch"):
            alarm.update_state(reason, json.dumps(data), state)
        if previous != state and alarm.actions_enabled:
            self._notices.send(alarm, previous=previous)


def _state(alarm: Any) -> str:
    """moto calls a new alarm OK; CloudWatch has no data yet."""
    state: str = INSUFFICIENT_DATA if alarm.state_reason == _INITIAL and not alarm.history else alarm.state_value
    return state


def _rule(alarm: Any) -> AlarmRule | None:
    operator = alarm.comparison_operator or ""
    if operator not in OPERATORS:
        return None
    periods = int(alarm.evaluation_periods)
    return AlarmRule(
        comparison_operator=operator,
        threshold=float(alarm.threshold),
        evaluation_periods=periods,
        datapoints_to_alarm=int(alarm.datapoints_to_alarm or periods),
        treat_missing_data=alarm.treat_missing_data or MISSING,
    )


def _periods(end: int, period_s: int, count: int) -> list[tuple[int, int]]:
    """Return start and end of the newest periods, oldest first; the window slides by the minute."""
    return [(end - (back + 1) * period_s, end - back * period_s) for back in reversed(range(count))]


def _seconds(datum: Any) -> float:
    """Return the time; moto keeps times with and without a zone, all UTC."""
    moment: datetime = datum.timestamp
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _names(expression: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", expression) is not None


def _same(dimensions: Iterable[Any], desired: Sequence[dict[str, str]]) -> bool:
    return {(one.name, one.value) for one in dimensions} == {(one["Name"], one["Value"]) for one in desired}


def _statistic(data: Sequence[Any], statistic: str) -> float | None:
    if statistic not in STATISTICS:
        raise MathError(f"statistic {statistic}")
    if not data:
        return None
    sets = [
        (one.sample_count, one.sum, one.min, one.max)
        if hasattr(one, "sample_count")
        else (1.0, one.value, one.value, one.value)
        for one in data
    ]
    count, total = sum(float(one[0]) for one in sets), sum(float(one[1]) for one in sets)
    if statistic == "Sum":
        return total
    if statistic == "SampleCount":
        return count
    if statistic == "Average":
        return total / count if count else None
    if statistic == "Minimum":
        return min(float(one[2]) for one in sets)
    return max(float(one[3]) for one in sets)


def _reason(rule: AlarmRule, points: Sequence[float | None], state: str) -> str:
    real = [one for one in points if one is not None][-rule.evaluation_periods :]
    if state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {rule.evaluation_periods} datapoint(s) were unknown."
    if not real:
        treated = "Breaching" if state == ALARM else "NonBreaching"
        return (
            f"Threshold Crossed: no datapoints were received for {rule.evaluation_periods} period(s) and "
            f"{rule.evaluation_periods} missing datapoint(s) were treated as [{treated}]."
        )
    breaching = sum(rule.breaches(one) for one in real)
    reported = breaching if state == ALARM else len(real) - breaching
    was = "were" if reported != 1 else "was"
    words = "greater than" if "Greater" in rule.comparison_operator else "less than"
    if "OrEqual" in rule.comparison_operator:
        words += " or equal to"
    no = "" if state == ALARM else "not "
    return (
        f"Threshold Crossed: {reported} datapoint(s) {[round(one, 6) for one in real]} {was} {no}{words} the threshold "
        f"({rule.threshold:g})."
    )
