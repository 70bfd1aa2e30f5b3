"""Two nodes of one job in trouble at once: which recovery is whose, what each cost, and when all is well again."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.planner import ledgers
from holdfast_common import Event, Incident, kinds, timeline

A, B = "i-0000000000000000a", "i-0000000000000000b"
SPARE, SECOND_SPARE = "i-00000000000000005", "i-00000000000000006"
NEW_A, NEW_B = "i-000000000000000aa", "i-000000000000000bb"
START_NS = 1_795_000_000_000_000_000


def at(seconds: float, kind: str, source: str = "control-plane", *, node: str, **values: Any) -> Event:
    return Event(time_ns=START_NS + round(seconds * 1e9), source=source, kind=kind, node=node, **values)


def job(seconds: float, kind: str, *, node: str = "i-1", **detail: str | int | bool) -> Event:
    return at(seconds, kind, "job", node=node, job="7", detail=detail)


def started(seconds: float, step: int, *nodes: str) -> Event:
    """The first start, of the step 0, or a resumption."""
    kind = kinds.JOB_RESUMED if step else kinds.JOB_STARTED
    return job(seconds, kind, step=step, nodes=",".join(("i-1", "i-2", *nodes)))


def verdict(seconds: float, node: str) -> Event:
    detail: dict[str, str | int] = {"incident": f"of-{node[-1]}", "severity": "device", "when": "now"}
    return at(seconds, kinds.VERDICT, "agent", node=node, fault="gpu-lost", action="replace", detail=detail)


def handed_over(seconds: float, node: str, *, step: int, took_s: float = 0.5) -> Event:
    """As the agent writes it: after the next look at what launchers say, and without the incident."""
    detail: dict[str, str | int] = {"rank": "3", "step": step, "steps_lost": 0}
    return at(seconds, kinds.HANDED_OVER, "agent", node=node, job="7", duration_s=took_s, detail=detail)


def replaced(seconds: float, old: str, new: str) -> tuple[Event, ...]:
    return (
        at(seconds - 8, kinds.NODE_REPLACING, node=old, detail={"replacement": new}),
        at(seconds, kinds.NODE_REPLACED, node=new, detail={"replaces": old}),
    )


def spare(seconds: float, node: str) -> Event:
    return job(seconds, kinds.SPARE_READY, node=node, launcher=3, spares=1)


def both(events: Sequence[Event]) -> tuple[Incident, Incident]:
    found = {incident.node: incident for incident in timeline(events).incidents}
    assert set(found) == {A, B}
    return found[A], found[B]


BEGUN = (started(-10, 0, B, A), job(-1, kinds.JOB_PROGRESS, step=18))


def test_one_recovery_that_takes_the_ranks_of_both_nodes_counts_for_both() -> None:
    first, second = both(
        [
            *BEGUN,
            verdict(0, A),
            verdict(0.4, B),
            job(1, kinds.RECOVERY_ABORTED, planned=True),
            job(1.1, kinds.VIEW_COMMITTED, generation=3, step=20, lost_steps=0),
            job(1.4, kinds.JOB_PROGRESS, step=20),
            started(1.5, 20, SPARE, SECOND_SPARE),
            handed_over(1.7, B, step=20),
            handed_over(2.3, A, step=20),
            job(4, kinds.JOB_PROGRESS, step=24),
        ]
    )

    assert (first.resumed_after_s, second.resumed_after_s) == (1.5, pytest.approx(1.1))
    assert [(each.steps_lost, each.steps_redone, each.job) for each in (first, second)] == [(0, 0, "7")] * 2


@pytest.mark.parametrize("judged_s", [0.4, 0.9, 1.2, 1.5, 1.500000001, 1.9, 2.4])
def test_a_node_whose_ranks_leave_later_takes_the_later_recovery_whenever_it_was_judged(judged_s: float) -> None:
    """Before, in the middle, at the end and after the recovery of the other one."""
    first, second = both(
        [
            *BEGUN,
            verdict(0, A),
            verdict(judged_s, B),
            job(0.8, kinds.RECOVERY_ABORTED, planned=True),
            job(1, kinds.RECOVERY_AGREED, planned=True),
            job(1.4, kinds.JOB_PROGRESS, step=20),
            job(1.5, kinds.RECOVERY_REBUILT, planned=True),
            started(1.5, 20, B, SPARE),
            handed_over(2.3, A, step=20),
            job(2.9, kinds.JOB_PROGRESS, step=22),
            started(3, 22, SECOND_SPARE, SPARE),
            handed_over(3.5, B, step=22),
        ]
    )

    assert (first.resumed_after_s, first.steps_lost) == (1.5, 0)
    assert second.resumed_after_s == pytest.approx(3 - judged_s)
    assert (second.steps_lost, second.steps_redone, second.job) == (0, 0, "7")


def test_an_agent_that_is_quicker_than_the_launcher_that_speaks_tells_of_the_same_recovery() -> None:
    first, second = both(
        [
            *BEGUN,
            verdict(0, A),
            verdict(1.4, B),
            handed_over(1.4, A, step=20),
            started(1.5, 20, B, SPARE),
            handed_over(2.9, B, step=22),
            started(3, 22, SECOND_SPARE, SPARE),
        ]
    )

    assert (first.resumed_after_s, second.resumed_after_s) == (1.4, 1.5)
    assert (first.steps_lost, second.steps_lost) == (0, 0)


def test_the_steps_and_seconds_that_the_recovery_of_the_other_cost_are_not_counted_again() -> None:
    first, second = both(
        [
            *BEGUN,
            verdict(0, A),
            verdict(0.5, B),
            job(1, kinds.VIEW_COMMITTED, generation=3, step=15, lost_steps=3),
            started(1.5, 15, B, SPARE),
            job(2.5, kinds.VIEW_COMMITTED, generation=4, step=16, lost_steps=0),
            started(3, 16, SECOND_SPARE, SPARE),
        ]
    )

    assert (first.steps_lost, second.steps_lost) == (3, 0)
    assert (first.stopped_s, second.stopped_s) == (1.5, 1.5)


def test_a_single_hand_over_is_told_as_before() -> None:
    (incident,) = timeline(
        [
            *BEGUN,
            verdict(0, A),
            started(1.5, 20, B, SPARE),
            handed_over(2.3, A, step=20),
            *replaced(10, A, NEW_A),
            spare(14, NEW_A),
        ]
    ).incidents

    assert (incident.resumed_after_s, incident.restored_after_s, incident.at_strength_after_s) == (1.5, 10, 14)
    assert (incident.steps_lost, incident.steps_redone, incident.stopped_s) == (0, 0, 1.5)


# The spare went to A, so that B is ended without one, and the job stands still until a node is back.
WITHOUT_A_SPARE = (
    *BEGUN,
    verdict(0, A),
    started(1.5, 20, B, SPARE),
    verdict(1.6, B),
    handed_over(2.3, A, step=20),
    job(6, kinds.JOB_PROGRESS, step=30),
    job(7, kinds.LAUNCHER_LOST, launcher=0, lost=2),
    *replaced(12, A, NEW_A),
    *replaced(15, B, NEW_B),
)


@pytest.mark.parametrize("spare_s", [20.5, 21.0, 23.0], ids=["before it settled", "at once", "after it"])
def test_a_spare_that_comes_while_the_job_goes_on_makes_both_strong_once_it_has(spare_s: float) -> None:
    """A launcher that gets no rank says so when the view is committed: before the ranks are together again."""
    first, second = both([*WITHOUT_A_SPARE, spare(spare_s, NEW_B), started(21, 31, NEW_A, SPARE)])

    assert (second.resumed_after_s, second.steps_lost) == (pytest.approx(21 - 1.6), 0)
    assert first.at_strength_after_s == max(21, spare_s)
    assert second.at_strength_after_s == pytest.approx(max(21, spare_s) - 1.6)


def test_a_node_that_came_back_and_took_a_rank_is_no_spare() -> None:
    _, second = both([*WITHOUT_A_SPARE, spare(20.5, NEW_A), started(21, 31, NEW_A, SPARE)])

    assert second.strong_ns is None


def test_whoever_looks_in_between_never_sees_full_strength_of_a_job_that_stands_still() -> None:
    events = sorted(
        [*WITHOUT_A_SPARE, spare(20.5, NEW_B), started(21, 31, NEW_A, SPARE)], key=lambda event: event.time_ns
    )
    seen = [timeline(events[:count]).incidents for count in range(len(events) + 1)]

    assert all(each.strong_ns is None for each in itertools.chain(*seen[:-1]))
    assert all(each.strong_ns is not None for each in seen[-1])


def test_a_job_that_ends_while_it_stands_still_holds_up_nobody() -> None:
    first, second = both([*WITHOUT_A_SPARE, job(18, kinds.JOB_STOPPED)])

    assert (first.at_strength_after_s, second.at_strength_after_s) == (18, pytest.approx(18 - 1.6))


def test_launchers_that_were_left_behind_say_nothing_of_the_job() -> None:
    """A node that is cut off takes all others for lost, maybe when these have gone on already."""
    first, _ = both(
        [
            *WITHOUT_A_SPARE,
            started(21, 31, NEW_A, SPARE),
            job(22, kinds.LAUNCHER_LOST, node=B, lost=0),
            spare(23, NEW_B),
        ]
    )

    assert first.at_strength_after_s == 23


def test_a_hand_over_that_is_told_after_its_recovery_takes_nothing_from_the_training_since() -> None:
    recovery = (
        job(1, kinds.RECOVERY_ABORTED, planned=True),
        job(1.1, kinds.RECOVERY_AGREED, planned=True),
        job(1.5, kinds.RECOVERY_REBUILT, planned=True),
        started(1.5, 20, SPARE, SECOND_SPARE),
    )
    told = (handed_over(2, B, step=20), handed_over(2.5, A, step=20))
    trained = (job(0.9, kinds.JOB_PROGRESS, step=20), job(3.5, kinds.JOB_PROGRESS, step=24))

    (without,) = ledgers([*BEGUN, *trained, *recovery])
    (book,) = ledgers([*BEGUN, *trained, *recovery, *told])

    assert book.totals_ns == without.totals_ns
