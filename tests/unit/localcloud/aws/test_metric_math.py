"""Metric math, by CloudWatch's user guide (using-metric-math)."""

import pytest

from holdfast.localcloud.aws.monitoring.metric_math import MathError, compute

TIMES = (0, 60, 120, 180)


def series(*values: float | None) -> dict[int, float]:
    return {time: value for time, value in zip(TIMES, values, strict=True) if value is not None}


GIVEN = {"m1": series(30, 20, 0, 0), "m2": series(20, None, 20, None), "none": {}}


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("m2", (20, None, 20, None)),
        ("m1 + m2", (50, 20, 20, 0)),
        ("-m2 + 5", (-15, None, -15, None)),
        ("FILL(m2, 1.5)", (20, 1.5, 20, 1.5)),
        ("FILL(m1, 0) - FILL(m2, 0) - FILL(none, -1)", (11, 21, -19, 1)),
    ],
)
def test_an_expression_is_a_time_series(expression: str, result: tuple[float | None, ...]) -> None:
    assert compute(expression, series=GIVEN, times=TIMES) == series(*result)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("m3", "the expression names 'm3', but no query has this id"),
        ("1 + 2", "metric math '1 + 2' without a metric"),
        *(
            (beyond, f"metric math '{beyond}'")
            for beyond in ("AVG(m1)", "METRICS()", "m1 +", "m1 m2", "FILL(m1)", "FILL(m1, REPEAT)", "m1 * 2", "")
        ),
    ],
)
def test_an_expression_beyond_the_subset_is_rejected_by_name(expression: str, why: str) -> None:
    with pytest.raises(MathError) as rejected:
        compute(expression, series=GIVEN, times=TIMES)
    assert str(rejected.value) == why
