"""Which events are shown."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.commands.cluster import events
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
        list(Choice(kinds=frozenset({"node_list"})).of(EVENTS))


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


def entry(event: Event) -> dict[str, Any]:
    """A line of a stream whose events have such a source."""
    stream = f"{event.node or 'i-1'}/jobs" if event.source == "job" else event.source
    return {"message": event.to_json(), "timestamp": event.time_ns // 1_000_000, "logStreamName": stream}


class Log:
    """A log group that is longer at each look; the third look is the last."""

    def __init__(self, *looks: list[Event]) -> None:
        self._looks, self.asked_since_ms = looks, list[int]()
        self.session = SimpleNamespace(cloud="embedded", cluster_name="c")

    def ask(self, service: str, operation: str, *, startTime: int, **_: object) -> dict[str, Any]:  # noqa: N803
        self.asked_since_ms.append(startTime)
        events = self._looks[len(self.asked_since_ms) - 1]
        found = [event for event in events if event.time_ns // 1_000_000 >= startTime]
        return {"events": [entry(one) for one in found]}

    def sleep(self, _: float) -> None:
        if len(self.asked_since_ms) == len(self._looks):
            raise KeyboardInterrupt


class Cluster(Log):
    """A cluster of one node, beside its log."""

    def ask(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        node = {"InstanceId": "i-2", "InstanceGroupName": "workers", "PrivateDnsHostname": "ip-10-1-0-12"}
        answers = {"DescribeCluster": {}, "ListClusterNodes": {"ClusterNodeSummaries": [node]}}
        return answers[operation] if operation in answers else super().ask(service, operation, **parameters)


@pytest.mark.parametrize(
    ("node", "printed"),
    [("i-2", 2), ("ip-10-1-0-12", 0), ("i-3", 1), ("i-1", 2)],
    ids=["there", "quiet", "past", "gone"],
)
def test_events_of_a_node_are_those_of_one_that_exists_or_that_an_event_names(
    node: str, printed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(EVENTS)
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.locate", lambda **_: cluster)

    events.events(node=node)

    assert len(capsys.readouterr().out.splitlines()) == printed
    assert cluster.asked_since_ms == [0], "the log is read once"


def test_a_past_node_without_recent_events_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.locate", lambda **_: Cluster(EVENTS))

    events.events(node="i-1", since="2026-11-22")

    assert "no events match" in capsys.readouterr().err


def test_a_node_that_neither_the_cluster_nor_an_event_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.locate", lambda **_: Cluster(EVENTS))

    with pytest.raises(CommandError, match="got --node bogus; allowed: i-2, ip-10-1-0-12, or a node of an event"):
        events.events(node="bogus", follow=True)


@pytest.mark.parametrize("tail", [None, 1])
def test_following_prints_each_event_once_those_shipped_late_too_and_does_not_read_the_whole_log_again(
    tail: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hour_ns = 3600 * 10**9
    old, newest, late, next_one = (
        Event(time_ns=at * hour_ns, source="cli", kind="of_a_newer_writer", node=f"i-{at}") for at in (10, 100, 99, 101)
    )
    log = Log([old, newest], [old, late, newest], [old, late, newest, next_one])
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.locate", lambda **_: log)
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.time.sleep", log.sleep)

    with pytest.raises(KeyboardInterrupt):
        events.events(follow=True, json=True, tail=tail, kind=["of_a_newer_writer"])

    printed = [Event.from_json(line).node for line in capsys.readouterr().out.splitlines()]
    assert printed == ["i-10", "i-100", "i-99", "i-101"][0 if tail is None else 1 :]
    assert log.asked_since_ms == [0, 98 * hour_ns // 10**6, 98 * hour_ns // 10**6]


def test_the_newest_are_printed_as_one_line_each_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holdfast.cli.commands.cluster.events.locate", lambda **_: Log(EVENTS))

    events.events(tail=2)

    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["1970-01-01", "00:00:00.000", "control-plane", "i-3", "node_replaced", "replaces=i-1"]
    assert second.split() == ["1970-01-01", "00:00:00.000", "job", "i-2", "of_a_newer_writer", "job", "8"]
