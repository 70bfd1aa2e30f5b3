"""Reading: newest events first, the whole log behind them, each event once, and bounded work."""

import time
from pathlib import Path

from console_lab import FakeSource, facts_of, moved, recorded, served, wait_until

from holdfast.cli.console.feed import Board, Intake, Paced, PagePosition, event_of_service
from holdfast.cli.console.state import LogState
from holdfast.cli.deployed import ServiceEvent
from holdfast_common import Event, kinds

S = 1_000_000_000


def submitted(at_ns: int, job: str) -> Event:
    return Event(time_ns=at_ns, source="cli", kind=kinds.JOB_SUBMITTED, job=job)


def test_an_event_that_is_read_again_is_taken_once() -> None:
    intake, events = Intake(), [submitted(S, "1"), submitted(2 * S, "2")]
    intake.take(events)
    assert intake.state.count == 2
    intake.take([*events, submitted(2 * S, "3")])
    assert intake.state.count == 3


def test_what_is_remembered_of_events_does_not_grow_with_the_log() -> None:
    intake = Intake()
    intake.take(submitted(at * 60 * S, str(at)) for at in range(10_000))
    assert len(intake._known) < 30


def test_old_events_are_read_behind_the_newest(repository: Path) -> None:
    old = moved(recorded(repository, "two-at-once"), end_ns=time.time_ns() - 3 * 86_400 * S)
    source = FakeSource(facts_of(5), [*old, submitted(time.time_ns() - 60 * S, "9")])
    asked: list[int] = []
    read = source.events

    def events(*, since_ns: int):  # type: ignore[no-untyped-def]
        asked.append(since_ns)
        return read(since_ns=since_ns)

    source.events = events  # type: ignore[method-assign]
    with served(source):
        wait_until(lambda: 0 in asked)
    assert asked[0] > time.time_ns() - 3600 * S, "the first look is at the last minutes"
    assert asked.count(0) == 1, "the whole log is read once"


def test_a_log_that_was_read_from_its_beginning_replaces_what_pages_have() -> None:
    board, position = Board(), PagePosition()
    newest, whole = LogState(), LogState()
    newest.add([submitted(2 * S, "2")])
    board.show(newest)
    ((name, first),) = board.messages(position, timeout_s=0)
    assert (name, '"again":true' in first, '"2"' in first) == ("events", True, True)
    assert board.messages(position, timeout_s=0) == []

    whole.add([submitted(S, "1"), submitted(2 * S, "2")])
    board.show(whole)
    ((_, second),) = board.messages(position, timeout_s=0)
    assert '"again":true' in second
    assert '"total":2' in second


def test_a_section_is_sent_when_it_differs() -> None:
    board, position = Board(), PagePosition()
    board.messages(position, timeout_s=0)
    board.publish({"jobs": [1], "groups": []})
    assert dict(board.messages(position, timeout_s=0)) == {"jobs": "[1]", "groups": "[]"}
    board.publish({"jobs": [1], "groups": [2]})
    assert dict(board.messages(position, timeout_s=0)) == {"groups": "[2]"}


def test_dear_work_waits_until_it_takes_its_share_of_a_core_at_most() -> None:
    now = [0.0]
    pace = Paced(10.0, clock=lambda: now[0])
    assert pace.is_due(changed=True)
    with pace.timed():
        now[0] += 0.5
    now[0] += 50.0
    assert not pace.is_due(changed=True), "half a second of work, and 50 s of rest: 1 % of a core"
    now[0] += 51.0
    assert pace.is_due(changed=True)


def test_cheap_work_is_done_at_once_after_a_change_and_else_now_and_then() -> None:
    now = [0.0]
    pace = Paced(10.0, clock=lambda: now[0])
    with pace.timed():
        now[0] += 0.001
    now[0] += 1.0
    assert pace.is_due(changed=True)
    assert not pace.is_due(changed=False)
    now[0] += 10.0
    assert pace.is_due(changed=False)


def test_an_event_of_hyperpod_is_one_of_its_control_plane() -> None:
    found = event_of_service(
        ServiceEvent(
            event_id="1", time="2026-11-30T07:00:00Z", level="Warn", resource_type="Instance",
            instance_group="workers", instance_id="i-1", description="Instance i-1 is unhealthy",
        )
    )  # fmt: skip
    assert (found.source, found.kind, found.node, found.evidence) == (
        "control-plane",
        "hyperpod_event",
        "i-1",
        "Instance i-1 is unhealthy",
    )
