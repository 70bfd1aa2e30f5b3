"""States of CloudWatch alarms, by the tables of its user guide (alarms-and-missing-data)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.aws.monitoring.alarm_states import AlarmRule, evaluate

TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
KEEPS = "(its state)"


def points(text: str) -> list[float | None]:
    return [{"0": 0.0, "X": 9.0, "-": None}[mark] for mark in text.split()]


def rule(*, needed: int, treat: str) -> AlarmRule:
    return AlarmRule(
        comparison_operator="GreaterThanThreshold",
        threshold=1,
        evaluation_periods=3,
        datapoints_to_alarm=needed,
        treat_missing_data=treat,
    )


@pytest.mark.parametrize(
    ("needed", "data", "states"),
    [
        (3, "0 - X - X", ("OK", "OK", "OK", "OK")),
        (3, "0 - - - -", ("OK", "OK", "OK", "OK")),
        (3, "- - - - -", ("INSUFFICIENT_DATA", KEEPS, "ALARM", "OK")),
        (3, "0 X X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (3, "- - X - -", ("ALARM", KEEPS, "ALARM", "OK")),
        (2, "0 - X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 0 X 0 X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 - X - -", ("OK", "OK", "ALARM", "OK")),
        (2, "- - - - 0", ("OK", "OK", "ALARM", "OK")),
        (2, "- - - X -", ("ALARM", KEEPS, "ALARM", "OK")),
    ],
)
def test_the_state_is_that_of_the_table(needed: int, data: str, states: tuple[str, ...]) -> None:
    for treat, state in zip(TREATMENTS, states, strict=True):
        for current in ("OK", "ALARM", "INSUFFICIENT_DATA"):
            found = evaluate(rule(needed=needed, treat=treat), points(data), current=current)
            assert found == (current if state == KEEPS else state), treat


@pytest.mark.parametrize("data", ["- - - - X", "- - - X -"])
def test_an_alarm_does_not_go_off_before_the_next_data_point_could_be_sound(data: str) -> None:
    assert evaluate(rule(needed=3, treat="missing"), points(data), current="OK") == "OK"


@pytest.mark.parametrize(
    ("operator", "breaching", "sound"),
    [
        ("GreaterThanOrEqualToThreshold", 1, 0.9),
        ("GreaterThanThreshold", 1.1, 1),
        ("LessThanThreshold", 0.9, 1),
        ("LessThanOrEqualToThreshold", 1, 1.1),
    ],
)
def test_each_operator_compares_as_its_name_says(operator: str, breaching: float, sound: float) -> None:
    found = AlarmRule(comparison_operator=operator, threshold=1, evaluation_periods=1, datapoints_to_alarm=1)
    assert found.breaches(breaching)
    assert not found.breaches(sound)


@given(st.lists(st.sampled_from([None, 0.0, 9.0]), min_size=5, max_size=5), st.sampled_from(TREATMENTS))
def test_a_whole_window_of_sound_data_is_ok_and_of_breaching_data_is_alarm(
    data: list[float | None], treat: str
) -> None:
    assert evaluate(rule(needed=3, treat=treat), [*data[:2], 0.0, 0.0, 0.0], current="ALARM") == "OK"
    assert evaluate(rule(needed=3, treat=treat), [*data[:2], 9.0, 9.0, 9.0], current="OK") == "ALARM"
