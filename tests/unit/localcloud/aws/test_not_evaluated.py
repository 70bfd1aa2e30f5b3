"""Parts of alarms and metric filters that are accepted but not evaluated."""

from typing import Any

import pytest

from holdfast.localcloud.aws.monitoring.not_evaluated import alarm_remark, filter_remark

PREFIX = "accepted but not evaluated by the embedded CloudWatch: "
ALARM = {"ComparisonOperator": "GreaterThanThreshold", "Statistic": "Sum"}
LOST = {"Id": "lost", "MetricStat": {"Metric": {"MetricName": "Lost"}, "Period": 60, "Stat": "Sum"}}


def expression(text: str) -> dict[str, Any]:
    return {"ComparisonOperator": "GreaterThanThreshold", "Metrics": [LOST, {"Id": "all", "Expression": text}]}


@pytest.mark.parametrize("alarm", [ALARM, expression("FILL(lost, 0)"), {**ALARM, "Statistic": "Average"}])
def test_an_alarm_that_is_evaluated_has_no_remark(alarm: dict[str, Any]) -> None:
    assert alarm_remark(alarm) == ""


@pytest.mark.parametrize(
    ("alarm", "part"),
    [
        ({"AlarmRule": "ALARM(a)"}, "composite alarm"),
        ({**ALARM, "Statistic": None, "ExtendedStatistic": "p90"}, "statistic p90"),
        (
            {**ALARM, "ComparisonOperator": "GreaterThanUpperThreshold"},
            "comparison operator GreaterThanUpperThreshold",
        ),
        (expression("RATE(lost)"), "metric math 'RATE(lost)'"),
        (expression("all + lost"), "the expression names 'all', but no query has this id"),
        (expression("FILL(found, 0)"), "the expression names 'found', but no query has this id"),
    ],
)
def test_the_part_of_an_alarm_that_is_not_evaluated_is_named(alarm: dict[str, Any], part: str) -> None:
    assert alarm_remark(alarm) == PREFIX + part


def test_a_filter_pattern_that_is_not_evaluated_is_named() -> None:
    assert filter_remark("{ $.kind = node_lost }") == ""
    assert filter_remark("%ERR.*%") == f"{PREFIX}filter pattern '%ERR.*%': unsupported term '%ERR.*%'"


@pytest.mark.parametrize(
    ("values", "dimensions", "part"),
    [
        (["1", "2.5", "$.steps"], ["$.detail.node"], ""),
        (["$.items[0].n"], [], "selector '$.items[0].n': unexpected '[0].n' after the selector"),
        (["$.n"], ["$host"], "selector '$host': a property selector starts with $."),
        (["many"], [], "selector 'many': expected $ before 'many'"),
    ],
)
def test_what_a_transformation_cannot_read_is_named(values: list[str], dimensions: list[str], part: str) -> None:
    remark = filter_remark("lost", values=values, dimensions=dimensions)

    assert remark == (PREFIX + part if part else "")
