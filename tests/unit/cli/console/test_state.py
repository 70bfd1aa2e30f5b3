"""State of the event log: of bounded size, in order of time, and equal to what all events at once give."""

import random
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest
from console_lab import recorded

from holdfast.cli.console.state import MOST, MOST_JOBS, MOST_REPORTS, SETTLES_NS, LogState, Series
from holdfast_common import Event, JobReader, kinds, timeline

S = 1_000_000_000
LOGS = ("boundary", "breaker", "controller-restart", "hand-over", "rehearsal", "two-at-once", "withdrawn")


def job(kind: str, at_s: float, *, node: str = "i-1", job: str = "7", **detail: str | int | float) -> Event:
    return Event(time_ns=int(at_s * S), source="job", kind=kind, job=job, node=node, detail=detail)


def state_of(events: Iterable[Event]) -> LogState:
    state = LogState()
    state.add(events)
    state.settle(1 << 62)
    return state


@pytest.mark.parametrize("name", LOGS)
def test_a_job_that_is_read_event_by_event_is_the_one_of_the_timeline(repository: Path, name: str) -> None:
    events = recorded(repository, name)
    whole = timeline(events)
    state = state_of(events)

    for expected in whole.jobs:
        assert state.jobs[expected.job].timeline(max(event.time_ns for event in events)) == expected


def test_goodput_is_exact_while_steps_are_done_again() -> None:
    chance, reader, step, at_s = random.Random(3), JobReader("7"), 0, 0.0
    events: list[Event] = []
    for number in range(300):
        at_s += chance.uniform(0.5, 4.0)
        restart = number == 0 or chance.random() < 0.1
        step = max(0, step - chance.randrange(12)) if restart else step + chance.randrange(4)
        events.append(job(kinds.JOB_RESUMED if restart else kinds.JOB_PROGRESS, at_s, step=step))
        reader.add(events[-1])
        (expected,) = timeline(events).jobs
        assert reader.timeline(events[-1].time_ns) == expected
        assert reader.productive_s() == pytest.approx(expected.productive_s)


@pytest.mark.parametrize("name", LOGS)
def test_events_of_one_look_in_any_order_give_the_same_incidents(repository: Path, name: str) -> None:
    events = recorded(repository, name)
    ordered = state_of(events)
    shuffled = LogState()
    for second in range(events[0].time_ns // S, events[-1].time_ns // S + 2):
        batch = [event for event in events if event.time_ns // S == second]
        random.Random(second).shuffle(batch)
        shuffled.add(batch)
        shuffled.settle((second + 1) * S)
    shuffled.settle(1 << 62)

    assert shuffled.incidents.incidents() == ordered.incidents.incidents()
    assert not shuffled.is_stale


def test_an_event_waits_until_earlier_ones_have_arrived() -> None:
    state = LogState()
    state.add([job(kinds.JOB_STARTED, 10.0, step=0)])
    state.settle(10 * S + SETTLES_NS - 1)
    assert "7" not in state.jobs
    assert [event.kind for _, event in state.recent.after(0)] == [kinds.JOB_STARTED], "it is listed at once"

    state.settle(10 * S + SETTLES_NS)
    assert state.jobs["7"].began_ns == 10 * S


def test_a_late_verdict_makes_the_state_stale_and_a_late_report_does_not() -> None:
    state = state_of([job(kinds.JOB_STARTED, 1.0, step=0), job(kinds.JOB_PROGRESS, 9.0, step=5)])
    state.add([job(kinds.JOB_PROGRESS, 5.0, step=3)])
    state.settle(1 << 62)
    assert (state.is_stale, state.jobs["7"].step) == (False, 5.0)

    state.add([Event(time_ns=6 * S, source="agent", kind=kinds.VERDICT, node="i-1", fault="gpu-lost")])
    assert state.is_stale


def test_the_newest_events_are_kept_and_reports_push_none_of_them_out() -> None:
    verdict = Event(time_ns=S, source="agent", kind=kinds.VERDICT, node="i-1", fault="gpu-lost")
    state = state_of([verdict, *(job(kinds.JOB_PROGRESS, 2.0 + at, step=at) for at in range(MOST_REPORTS + 100))])

    found = [event for _, event in state.recent.after(0)]
    assert found[0] == verdict
    assert len(found) == 1 + MOST_REPORTS
    assert state.recent.total == 1 + MOST_REPORTS + 100


def test_only_events_after_the_last_one_that_a_page_has_are_sent() -> None:
    state = state_of([job(kinds.JOB_PROGRESS, 1.0, step=1), job(kinds.JOB_SUBMITTED, 2.0)])
    number = state.recent.total
    assert state.recent.after(number) == []
    state.add([job(kinds.RANK_LOST, 3.0)])
    assert [event.kind for _, event in state.recent.after(number)] == [kinds.RANK_LOST]


def test_ten_thousand_jobs_and_a_hundred_thousand_reports_take_bounded_room() -> None:
    times = count(1)
    state = state_of(
        job(kind, next(times), job=f"{number}", step=number)
        for number in range(3 * MOST_JOBS)
        for kind in (kinds.JOB_STARTED, kinds.JOB_FINISHED)
    )
    assert len(state.jobs) == MOST_JOBS
    assert state.jobs_left_out == 2 * MOST_JOBS
    assert f"{3 * MOST_JOBS - 1}" in state.jobs

    series = Series()
    for at in range(100_000):
        series.add(at * S, step=float(at), loss=1.0, useful_s=float(at), restarted=False)
    assert len(series.times_ns) <= 801
    assert (series.times_ns[0], series.times_ns[-1]) == (0, 99_999 * S)
    assert set(series.rates()[1:]) == {1.0}, "a thinner series has the same rate"
    assert len(state.recent.after(0)) <= MOST + MOST_REPORTS


def test_a_report_within_a_moment_of_a_start_is_no_rate() -> None:
    series = Series()
    for at_ns, step, restarted in ((0, 0, True), (200_000, 1, False), (2 * S, 9, False), (2 * S + 1000, 10, False)):
        series.add(at_ns, step=float(step), loss=1.0, useful_s=0.0, restarted=restarted)

    assert series.rates() == [None, None, 8 / 1.9998, pytest.approx(9 / 1.9998, rel=1e-3)]


def test_a_running_job_is_kept_when_finished_ones_are_dropped() -> None:
    times = count(1)
    state = state_of(
        [
            job(kinds.JOB_STARTED, next(times), job="first", step=0),
            *(
                job(kind, next(times), job=f"{number}", step=1)
                for number in range(2 * MOST_JOBS)
                for kind in (kinds.JOB_STARTED, kinds.JOB_FINISHED)
            ),
        ]
    )
    assert "first" in state.jobs
