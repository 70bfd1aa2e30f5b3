"""Metric math, by the examples of CloudWatch's user guide (using-metric-math)."""

import pytest

from holdfast.localcloud.aws.monitoring.metric_math import Input, MathError, compute

TIMES = (0, 60, 120, 180)


def series(*values: float | None) -> dict[int, float]:
    return {time: value for time, value in zip(TIMES, values, strict=True) if value is not None}


GIVEN = Input(
    series={"m1": series(30, 20, 0, 0), "m2": series(20, None, 20, None), "none": {}},
    metrics=("m1", "m2"),
    times=TIMES,
    period_s=60,
)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("m1 < m2", (0, 0, 1, 0)),
        ("m1 >= 30", (1, 0, 0, 0)),
        ("m1 > 15 AND m2 > 15", (1, 0, 0, 0)),
        ("m1 > 15 && m2 > 15 || m2 == 20", (1, 0, 1, 0)),
        ("m1 + m2", (50, 20, 20, 0)),
        ("m1 - m2 * 2", (-10, 20, -40, 0)),
        ("(m1 - m2) * 2", (20, 40, -40, 0)),
        ("-5 * m1", (-150, -100, 0, 0)),
        ("m1 / PERIOD(m1)", (0.5, 20 / 60, 0, 0)),
        ("100 / m1", (100 / 30, 5, None, None)),
        ("m2 ^ 2", (400, None, 400, None)),
        ("FILL(m2, 0)", (20, 0, 20, 0)),
        ("FILL(m2, REPEAT)", (20, 20, 20, 20)),
        ("FILL(m2, m1)", (20, 20, 20, 0)),
        ("FILL(none, 0) + FILL(m2, 0)", (20, 0, 20, 0)),
        ("SUM(METRICS())", (50, 20, 20, 0)),
        ('SUM(METRICS("2"))', (20, None, 20, None)),
        ("MAX([m1, m2])", (30, 20, 20, 0)),
        ("m1 - AVG(m1)", (17.5, 7.5, -12.5, -12.5)),
        ("MIN(ABS([m1, -m2]))", (20, 20, 0, 0)),
        ("DIFF(m1)", (None, -10, -20, 0)),
        ("RATE(m1)", (None, -10 / 60, -20 / 60, 0)),
        ("IF(m1 > 10, 1, 0)", (1, 1, 0, 0)),
        ("IF(m1 > 10, m2)", (20, 0, None, None)),
        ("TIME_SERIES(10)", (10, 10, 10, 10)),
    ],
)
def test_an_expression_is_the_time_series_that_the_guide_says(
    expression: str, result: tuple[float | None, ...]
) -> None:
    assert compute(expression, GIVEN) == pytest.approx(series(*result))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("m3", "there is no query of this id"),
        ("AVG(m1)", "the result of an expression is a time series, got a number"),
        ("METRICS()", "an alarm watches one time series, got 2"),
        ("ANOMALY_DETECTION_BAND(m1)", "ANOMALY_DETECTION_BAND with 1 argument(s) is not in the embedded CloudWatch"),
        ("m1 +", "unexpected 'end'"),
        ("m1 $ m2", "unexpected '$ m2'"),
        ("(" * 60 + "m1" + ")" * 60, "too many parentheses"),
        ("FILL(m1)", "expected ,"),
        ("m1 + 1/0", "a number is divided by 0"),
    ],
)
def test_what_it_cannot_compute_is_said(expression: str, why: str) -> None:
    with pytest.raises(MathError) as refused:
        compute(expression, GIVEN)
    assert why in str(refused.value)
