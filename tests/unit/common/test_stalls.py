"""A stall of a job begins at its last finished step, not at a verdict."""

from typing import Any

from holdfast_common import Event, IncidentReader, kinds

SECOND = 1_000_000_000


def job(at_s: float, kind: str, *, duration_s: float | None = None, **detail: Any) -> Event:
    return Event(
        time_ns=int(at_s * SECOND), source="job", job="7", node="i-1", kind=kind, duration_s=duration_s, detail=detail
    )


STEPS = [job(10, kinds.JOB_STARTED, step=0), *(job(12 + 2 * n, kinds.JOB_PROGRESS, step=4 + 4 * n) for n in range(20))]
"""Half a second a step; the last one, number 80, at second 50."""


def read(*events: Event) -> IncidentReader:
    reader = IncidentReader()
    for event in events:
        reader.add(event)
    return reader


def test_a_stall_lasts_from_the_last_step_to_the_resumption() -> None:
    detected = job(171, kinds.RECOVERY_DETECTED, duration_s=121.0, planned=False)
    (one,) = read(*STEPS, detected, job(174, kinds.JOB_RESUMED, step=80)).stalls()

    assert (one.job, one.step) == ("7", 80)
    assert (one.start_ns, one.noticed_ns, one.resumed_ns) == (50 * SECOND, 171 * SECOND, 174 * SECOND)


def test_a_rank_that_dies_is_no_stall_nor_is_a_planned_move() -> None:
    died = job(51, kinds.RECOVERY_DETECTED, duration_s=1.0, planned=False)
    planned = job(90, kinds.RECOVERY_DETECTED, duration_s=30.0, planned=True)

    assert read(*STEPS, died, job(55, kinds.JOB_RESUMED, step=80), planned).stalls() == ()


def test_a_long_step_that_a_death_interrupts_is_no_stall() -> None:
    slow = [job(0, kinds.JOB_STARTED, step=0), *(job(60 * n, kinds.JOB_PROGRESS, step=n) for n in range(1, 5))]
    died = job(280, kinds.RECOVERY_DETECTED, duration_s=40.0, planned=False)

    assert read(*slow, died).stalls() == ()


def test_a_job_that_stands_still_now_is_a_stall_only_while_it_runs() -> None:
    reader = read(*STEPS)
    (one,) = reader.stalls(now_ns=120 * SECOND, runs=lambda name: name == "7")

    assert (one.start_ns, one.end_ns) == (50 * SECOND, None)
    assert reader.stalls(now_ns=120 * SECOND, runs=lambda _: False) == ()
    assert reader.stalls(now_ns=100 * SECOND, runs=lambda _: True) == ()


def test_a_job_that_a_launcher_stopped_for_its_silence_is_a_stall() -> None:
    (one,) = read(*STEPS, job(200, kinds.JOB_STOPPED)).stalls(now_ns=300 * SECOND, runs=lambda _: True)

    assert (one.start_ns, one.stopped_ns) == (50 * SECOND, 200 * SECOND)


def test_events_of_other_sources_begin_no_stall() -> None:
    forged = [Event(**{**vars(event), "source": "agent"}) for event in STEPS]

    assert read(*forged).stalls(now_ns=900 * SECOND, runs=lambda _: True) == ()
