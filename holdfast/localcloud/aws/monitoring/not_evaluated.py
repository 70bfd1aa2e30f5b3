"""Parts of alarms and metric filters that are accepted but not evaluated: name them at deployment. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.localcloud.aws.monitoring.alarm_states import OPERATORS, STATISTICS
from holdfast.localcloud.aws.monitoring.filter_patterns import (
    FilterPatternError,
    parse_pattern,
    parse_selector,
    to_number,
)
from holdfast.localcloud.aws.monitoring.metric_math import MathError, compute


def alarm_remark(alarm: Mapping[str, Any]) -> str:
    """
    Return what the embedded CloudWatch does not evaluate of an alarm; "" if it evaluates all.

    Args:
        alarm: Members of PutMetricAlarm or PutCompositeAlarm, or properties of the CloudFormation types.
    """
    if "AlarmRule" in alarm:
        return _remark("composite alarm")
    queries = alarm.get("Metrics") or ()
    statistics = [query["MetricStat"]["Stat"] for query in queries if "MetricStat" in query]
    statistics += [alarm[key] for key in ("Statistic", "ExtendedStatistic") if alarm.get(key)]
    parts = [f"statistic {one}" for one in statistics if one not in STATISTICS]
    operator = alarm.get("ComparisonOperator", "")
    parts += [] if operator in OPERATORS else [f"comparison operator {operator}"]
    ids = {query["Id"]: {0: 0.0} for query in queries}
    for query in queries:
        if query.get("Expression"):
            try:
                others = {name: values for name, values in ids.items() if name != query["Id"]}
                compute(query["Expression"], series=others, times=(0,))
            except MathError as error:
                parts.append(str(error))
    return _remark(*parts)


def filter_remark(pattern: str, *, values: Iterable[str] = (), dimensions: Iterable[str] = ()) -> str:
    """
    Return what the embedded CloudWatch Logs does not evaluate of a metric filter; "" if it evaluates all.

    Args:
        values: Numbers, or selectors of one, that the transformations publish.
        dimensions: Selectors of the values of dimensions.
    """
    parts = _unread("filter pattern", pattern, parse_pattern)
    for selector in (*(value for value in values if to_number(value) is None), *dimensions):
        parts += _unread("selector", selector, parse_selector)
    return _remark(*parts)


def _unread(what: str, text: str, parse: Callable[[str], object]) -> list[str]:
    try:
        parse(text)
    except FilterPatternError as error:
        return [f"{what} '{text}': {error}"]
    return []


def _remark(*parts: str) -> str:
    return f"accepted but not evaluated by the embedded CloudWatch: {', '.join(parts)}" if parts else ""
