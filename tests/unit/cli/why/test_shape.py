"""Shape of the time of a step, from the reports of a job every few seconds."""

from itertools import accumulate

import pytest

from holdfast.cli.diagnosis import pace_of


def marks(seconds: list[float], *, per: int = 10) -> list[tuple[float, float]]:
    """Reports after every ``per`` steps, each of which takes so many seconds."""
    times = accumulate([0.0, 3.0, *(one * per for one in seconds)])
    return [(1000.0 + at, float(place * per)) for place, at in enumerate(times)]


@pytest.mark.parametrize(
    ("seconds", "shape"),
    [
        ([0.5, 0.52, 0.49] * 5, "steady: 500 ms a step"),
        ([0.5] * 8 + [1.0] * 8, "sudden: 500 ms a step until step 90, 1.0 s since"),
        ([0.5 + 0.1 * place for place in range(16)], "gradual: from 700 ms to 1.8 s a step"),
        ([0.5, 0.5, 0.5, 0.5, 3.0] * 5, "periodic: 3.0 s in place of 500 ms a step about every 50 steps"),
        ([0.5] * 3, ""),
    ],
)
def test_a_shape_is_named(seconds: list[float], shape: str) -> None:
    assert pace_of(marks(seconds), now_s=2000.0).shape == shape


def test_the_age_of_the_last_step_counts_from_its_report_and_not_from_a_repeat() -> None:
    known = marks([0.5] * 8)
    pace = pace_of([*known, (known[-1][0] + 50, known[-1][1])], now_s=known[-1][0] + 60)

    assert (pace.step, pace.age_s, pace.usual_s, pace.longest_s) == (90, 60.0, 0.5, 5.0)


def test_an_attempt_without_a_finished_step_has_its_beginning() -> None:
    pace = pace_of([(1000.0, 40.0)], now_s=1030.0)

    assert (pace.is_first, pace.age_s, pace.usual_s, pace.step) == (True, 30.0, None, 40)
    assert pace_of([], now_s=5.0).age_s is None
