"""Which events are shown."""

from datetime import UTC, datetime

import pytest

from holdfast.cli.deployed import Choice, parse_since
from holdfast.cli.terminal import CommandError
from holdfast_common import Event

NOW = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)
EVENTS = [
    Event(time_ns=1, source="control-plane", node="i-1", kind="node_lost", detail={"host": "ip-10-1-0-11"}),
    Event(time_ns=2, source="job", node="i-2", job="7", kind="job_progress"),
    Event(time_ns=3, source="control-plane", node="i-3", kind="node_replaced", detail={"replaces": "i-1"}),
    Event(time_ns=4, source="job", node="i-2", job="8", kind="of_a_newer_writer"),
]


@pytest.mark.parametrize(
    ("choice", "times"),
    [
        (Choice(), [1, 2, 3, 4]),
        (Choice(kinds=frozenset({"node_lost", "job_progress"})), [1, 2]),
        (Choice(kinds=frozenset({"of_a_newer_writer"})), [4]),
        (Choice(node="i-1"), [1, 3]),
        (Choice(node="ip-10-1-0-11"), [1]),
        (Choice(job="7"), [2]),
        (Choice(since_ns=3), [3, 4]),
    ],
)
def test_events_are_chosen_by_kind_node_job_and_time(choice: Choice, times: list[int]) -> None:
    assert [event.time_ns for event in choice.of(EVENTS)] == times


def test_a_kind_that_nobody_writes_is_refused_with_those_there_are() -> None:
    with pytest.raises(CommandError, match=r"got --kind node_list; allowed: agent_started, .*node_lost"):
        Choice(kinds=frozenset({"node_list"})).of(EVENTS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86400),
        ("2026-11-22T17:00", 3600),
        ("2026-11-22T19:00+02:00", 3600),
        ("2026-11-22", 64800),
    ],
)
def test_since_is_an_age_or_a_time(text: str, seconds: int) -> None:
    assert parse_since(text, now=NOW) == (int(NOW.timestamp()) - seconds) * 1_000_000_000


@pytest.mark.parametrize("text", ["", "yesterday", "5x", "-5m", "999999d", "\0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="allowed: a time such as"):
        parse_since(text, now=NOW)


def test_a_time_before_all_events_asks_for_all_of_them() -> None:
    assert parse_since("0001-01-01T00:00+23:59", now=NOW) == parse_since("1960-01-01", now=NOW) == 0
