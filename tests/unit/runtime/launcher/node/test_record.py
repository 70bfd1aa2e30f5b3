"""What launchers write of a job, whatever its script: its ledger is right to the nanosecond."""

from types import SimpleNamespace
from typing import Any

from holdfast.planner.actual import ledgers
from holdfast_common import Event, kinds, timeline
from holdfast_runtime.launcher.generation import Record
from holdfast_runtime.launcher.links import Settled
from holdfast_runtime.membership import RankStatus, Slot, View

S = 1_000_000_000


class Story:
    """One launcher, with a clock that is set by hand."""

    def __init__(self, *, rank: int = 0, in_process: bool = True, sizes: tuple[int, ...] = ()) -> None:
        self.now_s, self.rank = 100.0, rank
        self.events: list[Event] = []
        slots: Any = type("Slots", (list,), {})([SimpleNamespace(rank=rank)])
        slots.in_process = in_process
        journal: Any = SimpleNamespace(event_at=self._write)
        self.record = Record(
            slots=slots, journal=journal, instance="i-0", sizes=sizes, clock=lambda: round(self.now_s * S)
        )

    def _write(self, time_ns: int | None, kind: str, *, duration_s: float | None, detail: dict[str, Any]) -> None:
        moment = round(self.now_s * S) if time_ns is None else time_ns
        self.events.append(
            Event(time_ns=moment, source="job", job="7", kind=kind, duration_s=duration_s, detail=detail)
        )

    def view(
        self, generation: int, *, step: int, sources: tuple[Any, ...] = ("memory", "memory"), lost: int = 0
    ) -> View:
        ranks = tuple(RankStatus(slot=Slot(node, 0), rank=node, port=1) for node in range(2))
        made = View(
            generation=generation,
            nodes=(0, 0),
            ranks=ranks,
            resume_step=step,
            sources=sources,
            donors=((), ()),
            lost_steps=lost,
        )
        self.record.installed(made)
        return made

    def settle(self, view: View, *, copy_s: float = 0.0) -> None:
        self.record.settled(view, {node: Settled(view.generation, f"i-{node}", node * copy_s) for node in range(2)})

    def steps(self, first: int, last: int) -> None:
        for step in range(first, last + 1):
            self.now_s += 1
            self.record.moved(step=step, loss=1.0 / step, total=40, of_first=self.rank == self.record.rank)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def begun() -> Story:
    story = Story()
    story.settle(story.view(2, step=0, sources=("fresh", "fresh")))
    return story


def test_a_job_without_a_fault_has_a_start_progress_now_and_then_and_a_finish() -> None:
    story = begun()
    story.steps(1, 10)
    story.record.finished()

    assert story.kinds() == [kinds.JOB_STARTED, *[kinds.JOB_PROGRESS] * 4, kinds.JOB_FINISHED]
    (job,) = timeline(story.events).jobs
    assert (job.steps, job.attempts, job.productive_s, job.last_loss) == (10, 1, 10.0, 0.1)
    assert story.events[0].detail["nodes"] == "i-0,i-1"
    assert {event.detail["steps"] for event in story.events[1:]} == {40}


def test_each_phase_of_a_recovery_is_on_its_account_and_only_training_is_useful() -> None:
    story = begun()
    story.steps(1, 10)
    story.now_s += 1.5
    story.record.troubled(planned=False)
    story.now_s += 0.25
    story.record.left()
    story.now_s += 0.5
    view = story.view(3, step=10, sources=("memory", "peer"))
    story.now_s += 3
    story.settle(view, copy_s=2.0)
    story.steps(11, 12)
    story.record.finished()

    (book,) = ledgers(story.events)
    seconds = {account: total / S for account, total in book.totals_ns.items() if total}
    assert seconds == {"useful": 12.0, "detect": 1.5, "abort": 0.25, "agree": 0.5, "copy": 2.0, "rebuild": 1.0}
    (job,) = timeline(story.events).jobs
    assert (job.attempts, job.steps, job.steps_redone) == (2, 12, 0)
    times = [event.time_ns for event in story.events]
    assert times == sorted(times), "who ships them sends them in the order of time"


def test_a_planned_hand_over_detects_nothing() -> None:
    story = begun()
    story.steps(1, 6)
    story.record.troubled(planned=True)
    story.record.left()
    story.settle(story.view(3, step=6, sources=("memory", "peer")))

    assert kinds.RECOVERY_DETECTED not in story.kinds()
    assert story.kinds()[-1] == kinds.JOB_RESUMED
    assert {event.detail["planned"] for event in story.events if event.kind == kinds.RECOVERY_AGREED} == {True}


def test_two_faults_of_one_recovery_are_one_recovery_from_the_first_on() -> None:
    story = begun()
    story.steps(1, 4)
    story.record.troubled(planned=False)
    story.record.left()
    story.view(3, step=4)
    story.now_s += 2
    story.record.troubled(planned=False)
    story.settle(story.view(4, step=4))

    (detected,) = [event for event in story.events if event.kind == kinds.RECOVERY_DETECTED]
    assert detected.time_ns == 104 * S
    assert story.kinds().count(kinds.JOB_RESUMED) == 1


def test_a_node_that_is_lost_before_a_hand_over_is_over_makes_one_recovery_of_both_that_nobody_planned() -> None:
    story = begun()
    story.steps(1, 4)
    story.record.troubled(planned=True)
    story.record.left()
    story.view(3, step=4, sources=("memory", "peer"))
    story.now_s += 2
    story.record.troubled(planned=False)
    story.settle(story.view(4, step=4, sources=("memory", "peer")))

    assert story.kinds().count(kinds.JOB_RESUMED) == 1
    assert kinds.RECOVERY_DETECTED not in story.kinds(), "what began it was planned"
    told = [event.detail["planned"] for event in story.events if event.kind.startswith("recovery_")]
    assert set(told) == {False}


def test_only_the_launcher_of_the_first_rank_that_kept_its_state_speaks() -> None:
    story = Story(rank=1)
    story.settle(story.view(2, step=0, sources=("fresh", "fresh")))
    story.steps(1, 4)
    assert story.events == []

    story.record.troubled(planned=False)
    story.settle(story.view(3, step=4, sources=("peer", "memory")))

    assert story.kinds()[-1] == kinds.JOB_RESUMED
    assert (kinds.JOB_PROGRESS, 4) in [(event.kind, event.detail.get("step")) for event in story.events]


def test_a_job_that_goes_on_from_a_checkpoint_is_resumed_and_tells_of_no_recovery() -> None:
    story = Story()
    story.settle(story.view(2, step=40, sources=("checkpoint", "checkpoint")))

    assert [(event.kind, event.detail["step"]) for event in story.events] == [(kinds.JOB_RESUMED, 40)]


def test_a_script_that_says_nothing_has_a_start_a_restart_and_a_finish() -> None:
    story = Story(in_process=False)
    story.view(1, step=0)
    story.now_s += 5
    story.view(2, step=0)
    story.now_s += 5
    story.record.finished()

    assert [(event.kind, event.time_ns // S) for event in story.events] == [
        (kinds.JOB_STARTED, 100),
        (kinds.JOB_RESUMED, 105),
        (kinds.JOB_FINISHED, 110),
    ]
    assert "step" not in story.events[-1].detail


def test_an_elastic_job_names_the_sizes_it_may_have_with_each_start() -> None:
    story = Story(sizes=(1, 2))
    story.settle(story.view(2, step=0, sources=("fresh", "fresh")))
    story.settle(story.view(3, step=4))

    starts = [event for event in story.events if event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED)]
    assert [event.detail["sizes"] for event in starts] == ["1,2", "1,2"]
    assert "sizes" not in begun().events[0].detail
