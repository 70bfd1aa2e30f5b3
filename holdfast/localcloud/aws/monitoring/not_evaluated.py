"""Parts of alarms and metric filters that are accepted but not evaluated: name them at deployment. Pure."""

from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.monitoring.alarm_states import OPERATORS, STATISTICS
from holdfast.localcloud.aws.monitoring.filter_patterns import FilterPatternError, parse_pattern
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
                compute(query["Expression"], series=ids, times=(0,))
            except MathError as error:
                parts.append(str(error))
    return _remark(*parts)


def filter_remark(pattern: str) -> str:
    """Return why the embedded CloudWatch Logs does not evaluate a metric filter's pattern; "" if it does."""
    try:
        parse_pattern(pattern)
    except FilterPatternError as error:
        return _remark(f"filter pattern '{pattern}': {error}")
    return ""


def _remark(*parts: str) -> str:
    return f"accepted but not evaluated by the embedded CloudWatch: {', '.join(parts)}" if parts else ""
