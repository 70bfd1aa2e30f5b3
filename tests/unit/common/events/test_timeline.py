"""The timeline: what happened, told from events alone, whatever is missing, late or repeated."""

import random
from collections.abc import Sequence

import pytest

from holdfast_common import Event, JobTimeline, Phase, Timeline, fault_named, kinds, timeline

LOST, NEW = "i-0000000000000000a", "i-0000000000000000b"


def at(seconds: float, kind: str, source: str = "control-plane", **values: object) -> Event:
    return Event(time_ns=1_795_000_000_000_000_000 + round(seconds * 1e9), source=source, kind=kind, **values)  # type: ignore[arg-type]


def job(seconds: float, kind: str, step: int, loss: float | None = None, **detail: str | int) -> Event:
    numbers = {"step": step} | ({} if loss is None else {"loss": loss})
    return at(seconds, kind, "job", job="1", detail=numbers | detail)


def recorded() -> list[Event]:
    """A job of 20 steps, one second each, whose node is destroyed after step 12."""
    return [
        at(-2, kinds.JOB_SUBMITTED, "cli", job="1"),
        job(0, kinds.JOB_STARTED, 0, nodes=f"i-1,{LOST}"),
        job(5, kinds.JOB_PROGRESS, 5, 5.5),
        job(10, kinds.JOB_PROGRESS, 10, 4.5),
        job(10.5, kinds.CHECKPOINT_SAVED, 10),
        job(15.5, kinds.JOB_PROGRESS, 15, 4.0),
        at(16, kinds.FAULT_INJECTED, "cli", node=LOST, fault="instance-lost"),
        at(16.25, kinds.NODE_LOST, node=LOST, fault="instance-lost"),
        at(16.5, kinds.NODE_REPLACING, node=LOST),
        at(19, kinds.NODE_IN_SERVICE, node=NEW),
        at(19, kinds.NODE_REPLACED, node=NEW, detail={"replaces": LOST}),
        job(36, kinds.JOB_RESUMED, 10, nodes=f"i-1,{NEW}"),
        job(41, kinds.JOB_PROGRESS, 15, 4.0),
        job(46, kinds.JOB_PROGRESS, 20, 2.75),
        job(46, kinds.JOB_FINISHED, 20, 2.75),
    ]


def only_job(events: Sequence[Event]) -> JobTimeline:
    (found,) = timeline(events).jobs
    return found


def test_an_incident_counts_its_seconds_from_the_injection() -> None:
    (incident,) = timeline(recorded()).incidents
    assert (incident.node, incident.fault, incident.replacement, incident.job) == (LOST, "instance-lost", NEW, "1")
    assert incident.noticed_after_s == 0.25
    assert incident.restored_after_s == 3.0
    assert incident.resumed_after_s == 20.0


def test_the_sizes_of_a_job_are_told_with_the_steps_from_which_it_had_them() -> None:
    told = only_job(
        [
            job(0, kinds.JOB_STARTED, 0, world_size=5),
            job(5, kinds.JOB_PROGRESS, 16),
            job(6, kinds.JOB_RESIZED, 16, world_size=3, world_size_before=5),
            job(6, kinds.JOB_RESUMED, 16, world_size=3),
            job(9, kinds.JOB_RESUMED, 20, world_size=3),
            job(12, kinds.JOB_RESIZED, 89, world_size=5, world_size_before=3),
        ]
    )
    assert told.sizes == ((0, 5), (16, 3), (89, 5))
    assert only_job(recorded()).sizes == ()


def test_goodput_leaves_out_steps_done_again_checkpoints_and_waiting() -> None:
    told = only_job(recorded())
    assert told.wall_s == 46.0
    assert told.productive_s == pytest.approx(20.0)
    assert told.goodput == pytest.approx(20.0 / 46.0)
    assert (told.attempts, told.steps, told.steps_redone) == (2, 20, 5)
    assert (told.first_loss, told.last_loss) == (5.5, 2.75)


def test_the_phases_of_a_job_cover_its_life_without_gaps() -> None:
    told = only_job(recorded())
    assert [(phase.kind, phase.duration_s) for phase in told.phases] == [
        ("queued", 2.0),
        ("training", 15.5),
        ("waiting", 20.5),
        ("training", 10.0),
    ]
    assert told.phases[-1].end_ns == told.end_ns == told.finished_ns


def test_order_and_repeats_change_nothing() -> None:
    events = recorded()
    shuffled = events + events[3:9]
    random.Random(0).shuffle(shuffled)
    assert timeline(shuffled) == timeline(events)


@pytest.mark.parametrize("missing", range(len(recorded())))
def test_any_single_missing_event_is_survived(missing: int) -> None:
    events = recorded()
    del events[missing]
    told = timeline(events)
    assert len(told.incidents) == 1
    goodput = told.jobs[0].goodput
    assert goodput is not None
    assert 0 <= goodput <= 1


def test_an_uninterrupted_job_has_no_incident_and_full_goodput() -> None:
    told = timeline([job(0, kinds.JOB_STARTED, 0), job(5, kinds.JOB_PROGRESS, 5), job(5, kinds.JOB_FINISHED, 5)])
    assert told.incidents == ()
    assert told.jobs[0].goodput == 1.0


def test_a_job_still_running_is_measured_to_the_latest_event() -> None:
    told = only_job([*recorded()[:6], at(20.5, kinds.NODE_LOST, node=LOST)])
    assert told.finished_ns is None
    assert told.wall_s == 20.5
    assert told.phases[-1] == Phase(kind="waiting", start_ns=told.end_ns - 5_000_000_000, end_ns=told.end_ns)
    assert told.productive_s == pytest.approx(15.0)


def test_a_node_nobody_broke_counts_from_the_notice() -> None:
    events = [event for event in recorded() if event.kind != kinds.FAULT_INJECTED]
    (incident,) = timeline(events).incidents
    assert incident.noticed_after_s is None
    assert incident.restored_after_s == 2.75
    assert incident.resumed_after_s == 19.75


def test_a_notice_written_before_the_injection_is_the_same_incident() -> None:
    events = [
        at(1.0, kinds.NODE_LOST, node=LOST),
        at(1.01, kinds.FAULT_INJECTED, "cli", node=LOST, fault="instance-lost"),
        at(3.0, kinds.NODE_REPLACED, node=NEW, detail={"replaces": LOST}),
    ]
    (incident,) = timeline(events).incidents
    assert incident.noticed_after_s == 0.0
    assert incident.restored_after_s == 2.0
    assert incident.resumed_after_s is None


def test_a_replacement_may_be_told_from_the_old_node() -> None:
    events = [
        at(0, kinds.NODE_LOST, node=LOST),
        at(2, kinds.NODE_REPLACED, node=LOST, detail={"replacement": NEW}),
    ]
    assert timeline(events).incidents[0].replacement == NEW


def test_a_reboot_restores_the_node_under_its_own_name() -> None:
    events = [at(0, kinds.NODE_FAILED, node=LOST), at(2, kinds.NODE_REBOOTED, node=LOST)]
    (incident,) = timeline(events).incidents
    assert (incident.restored_after_s, incident.replacement) == (2.0, "")


def test_a_node_lost_twice_has_two_incidents() -> None:
    events = [
        at(0, kinds.NODE_LOST, node=LOST),
        at(1, kinds.NODE_REBOOTED, node=LOST),
        at(5, kinds.NODE_LOST, node=LOST),
    ]
    assert [incident.restored_after_s for incident in timeline(events).incidents] == [1.0, None]


def test_the_loss_of_an_idle_node_is_not_ended_by_an_unrelated_resume() -> None:
    idle = at(15.9, kinds.NODE_LOST, node="i-spare")
    told = timeline([*recorded(), idle])
    assert {incident.node: incident.resumed_after_s for incident in told.incidents} == {"i-spare": None, LOST: 20.0}


def test_a_killed_rank_is_an_incident_of_its_own() -> None:
    events = [
        at(0, kinds.FAULT_INJECTED, "cli", node=LOST, fault="rank-died"),
        at(1, kinds.NODE_LOST, node=LOST, fault="instance-lost"),
        at(2, kinds.NODE_REPLACED, node=NEW, detail={"replaces": LOST}),
    ]
    assert [(i.fault, i.restored_after_s) for i in timeline(events).incidents] == [
        ("rank-died", None),
        ("instance-lost", 1.0),
    ]


def test_a_job_that_dies_before_its_first_checkpoint_does_everything_again() -> None:
    events = [
        job(0, kinds.JOB_STARTED, 0),
        job(5, kinds.JOB_PROGRESS, 5),
        job(10, kinds.JOB_STARTED, 0),
        job(20, kinds.JOB_FINISHED, 10),
    ]
    told = only_job(events)
    assert (told.attempts, told.steps_redone, told.goodput) == (2, 5, 0.5)


def test_no_events_tell_nothing() -> None:
    assert timeline([]) == Timeline(incidents=(), jobs=())
    assert timeline([at(0, kinds.JOB_SUBMITTED, "cli", job="1")]).jobs == ()


def test_jobs_are_told_apart_and_come_in_order_of_their_start() -> None:
    other = [
        at(1, kinds.JOB_STARTED, "job", job="2", detail={"step": 0}),
        at(3, kinds.JOB_FINISHED, "job", job="2", detail={"step": 4}),
    ]
    assert [(told.job, told.wall_s) for told in timeline([*other, *recorded()]).jobs] == [("1", 46.0), ("2", 2.0)]


def test_a_fault_is_found_by_name_and_an_unknown_one_is_refused() -> None:
    assert fault_named("instance-lost").remedy.value == "replace"
    with pytest.raises(KeyError, match=r"unknown fault 'bad-luck'; allowed: .*instance-lost"):
        fault_named("bad-luck")
