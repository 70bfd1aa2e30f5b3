"""
State of an alarm from its newest data points. Pure.

Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data" (alarms-and-missing-data), read
2026-11-23; its tables are tests. The evaluation range depends on period and resolution; the guide shows two more data
points, which is assumed for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

OK, ALARM, INSUFFICIENT_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"
FURTHER_BACK = 2
"""Data points that are looked at beyond the evaluation periods."""
MISSING, IGNORE, BREACHING, NOT_BREACHING = "missing", "ignore", "breaching", "notBreaching"

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}
OPERATORS = tuple(_COMPARE)
STATISTICS = ("Average", "Maximum", "Minimum", "SampleCount", "Sum")


@dataclass(frozen=True, kw_only=True)
class AlarmRule:
    """
    Condition of an alarm.

    Args:
        comparison_operator: One of ``OPERATORS``.
        datapoints_to_alarm: Number of evaluation periods that must breach.
        treat_missing_data: "missing", "ignore", "breaching" or "notBreaching".
    """

    comparison_operator: str
    threshold: float
    evaluation_periods: int
    datapoints_to_alarm: int
    treat_missing_data: str = MISSING

    def breaches(self, value: float) -> bool:
        return _COMPARE[self.comparison_operator](value, self.threshold)


def evaluate(rule: AlarmRule, points: Sequence[float | None], *, current: str) -> str:
    """
    Return the next state.

    Args:
        points: Evaluation range, oldest first: ``evaluation_periods + FURTHER_BACK`` values; None is missing.
        current: Present state.
    """
    real = [rule.breaches(value) for value in points if value is not None]
    periods, needed = rule.evaluation_periods, rule.datapoints_to_alarm
    if len(real) >= periods:
        return ALARM if sum(real[-periods:]) >= needed else OK
    filled = periods - len(real)
    if rule.treat_missing_data == BREACHING:
        return ALARM if sum(real) + filled >= needed else OK
    if rule.treat_missing_data == NOT_BREACHING:
        return ALARM if sum(real) >= needed else OK
    if not real:
        return INSUFFICIENT_DATA if rule.treat_missing_data == MISSING else current
    if sum(real) >= needed:
        return ALARM
    if not all(real):
        return OK
    if rule.treat_missing_data == MISSING and _oldest_breach(rule, points) >= needed:
        return ALARM
    return current


def _oldest_breach(rule: AlarmRule, points: Sequence[float | None]) -> int:
    """Return the age of the oldest breaching data point in periods; the newest has age 1."""
    return max(len(points) - at for at, value in enumerate(points) if value is not None and rule.breaches(value))
