"""From events to what happened: incidents with their seconds, the phases of each job, its goodput and loss.

Pure and total: computed from events and nothing else, in any order, with repeats, and with parts missing. What the
events do not tell is None, never a guess.

Goodput is the share of a job's wall time that went into steps which still count at the end. Queueing before the first
start is outside; starting up again, saving checkpoints, waiting for a node, and steps thrown away by a resume are not
productive. A job without a finish is measured up to the latest event of the list.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_number
from holdfast_common.incident_jobs import with_jobs
from holdfast_common.incident_story import stories
from holdfast_common.incidents import Incident

_SECOND = 1e9
_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_MARKS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED)


@dataclass(frozen=True)
class Phase:
    """A stretch of a job's life: ``queued``, ``training`` or ``waiting`` (between two attempts, or since the last)."""

    kind: str
    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.start_ns) / _SECOND


@dataclass(frozen=True)
class JobTimeline:
    """One job, over all its attempts."""

    job: str
    submitted_ns: Optional[int]
    started_ns: int
    finished_ns: Optional[int]
    end_ns: int
    """The finish, or the latest event known."""
    phases: tuple[Phase, ...]
    attempts: int
    steps: int
    """Steps done that still count."""
    steps_redone: int
    """Steps seen done and then done again after a resume. Steps after the last report of a dead attempt are unseen."""
    productive_s: float
    first_loss: Optional[float]
    last_loss: Optional[float]
    sizes: tuple[tuple[int, int], ...] = ()
    """Steps from which the job had another number of ranks, each with that number; the first is that of its start."""

    @property
    def wall_s(self) -> float:
        """Seconds since the first start."""
        return (self.end_ns - self.started_ns) / _SECOND

    @property
    def goodput(self) -> Optional[float]:
        """Productive share of the wall time; None when no time has passed."""
        return self.productive_s / self.wall_s if self.wall_s > 0 else None


@dataclass(frozen=True)
class Timeline:
    """Everything that can be told from a list of events, oldest first."""

    incidents: tuple[Incident, ...]
    jobs: tuple[JobTimeline, ...]


def timeline(events: Iterable[Event]) -> Timeline:
    """Compute the timeline of one cluster's events."""
    ordered = in_order(events)
    by_job: dict[str, list[Event]] = {}
    for event in ordered:
        if event.source == "job" or event.kind == kinds.JOB_SUBMITTED:
            by_job.setdefault(event.job, []).append(event)
    jobs = [_job(name, own, ordered[-1].time_ns) for name, own in by_job.items()]
    return Timeline(
        incidents=with_jobs(stories(ordered), ordered),
        jobs=tuple(sorted((job for job in jobs if job is not None), key=lambda job: job.started_ns)),
    )


def in_order(events: Iterable[Event]) -> "list[Event]":
    """Each event once, by its time; of one instant always in the same order, however they came."""
    unique = {event.to_json(): event for event in events}
    return [unique[line] for line in sorted(unique, key=lambda line: (unique[line].time_ns, _rank(unique[line]), line))]


def _rank(event: Event) -> int:
    """At one instant a start comes before the steps of it, and the finish comes last."""
    return 0 if event.kind in _STARTS else 2 if event.kind == kinds.JOB_FINISHED else 1


@dataclass(frozen=True)
class _Mark:
    """At this time, so many steps were done."""

    time_ns: int
    step: float


def _job(name: str, events: Sequence[Event], latest_ns: int) -> Optional[JobTimeline]:
    running = [event for event in events if event.kind in _STARTS + _MARKS]
    if not running:
        return None
    submitted = [event.time_ns for event in events if event.kind == kinds.JOB_SUBMITTED]
    finished = [event.time_ns for event in running if event.kind == kinds.JOB_FINISHED]
    attempts = _attempts(running)
    finished_ns = finished[-1] if finished and running[-1].time_ns <= finished[-1] else None
    end_ns = max(latest_ns, running[-1].time_ns) if finished_ns is None else finished_ns
    losses = [loss for event in running if (loss := detail_number(event, "loss")) is not None]
    submitted_ns = submitted[0] if submitted and submitted[0] <= running[0].time_ns else None
    return JobTimeline(
        job=name,
        submitted_ns=submitted_ns,
        started_ns=running[0].time_ns,
        finished_ns=finished_ns,
        end_ns=end_ns,
        phases=_phases(attempts, submitted_ns=submitted_ns, end_ns=end_ns),
        attempts=len(attempts),
        steps=int(max(mark.step for mark in attempts[-1])),
        steps_redone=sum(_redone(attempts, index) for index in range(len(attempts))),
        productive_s=sum(_productive_s(attempts, index) for index in range(len(attempts))),
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        sizes=_sizes(events),
    )


def _sizes(events: Sequence[Event]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for event in events:
        size = detail_number(event, "world_size") if event.kind in (*_STARTS, kinds.JOB_RESIZED) else None
        if size is not None and (not found or found[-1][1] != size):
            found.append((int(detail_number(event, "step") or 0), int(size)))
    return tuple(found)


def _attempts(running: Sequence[Event]) -> list[list[_Mark]]:
    """Split at each start. Within an attempt steps never go back, so a late, smaller report is no mark."""
    attempts: list[list[_Mark]] = []
    for event in running:
        step = detail_number(event, "step")
        if event.kind in _STARTS:
            attempts.append([_Mark(time_ns=event.time_ns, step=step or 0.0)])
        elif not attempts:
            # The start is missing: nothing is known before this report.
            attempts.append([_Mark(time_ns=event.time_ns, step=step or 0.0)])
        else:
            reached = attempts[-1][-1].step
            attempts[-1].append(_Mark(time_ns=event.time_ns, step=reached if step is None else max(step, reached)))
    return attempts


def _kept_until(attempts: Sequence[Sequence[_Mark]], index: int) -> float:
    """Steps of this attempt up to here count: no later attempt started before them."""
    return min((later[0].step for later in attempts[index + 1 :]), default=float("inf"))


def _productive_s(attempts: Sequence[Sequence[_Mark]], index: int) -> float:
    kept_until = _kept_until(attempts, index)
    marks = attempts[index]
    seconds = 0.0
    for before, after in zip(marks, marks[1:]):
        done = after.step - before.step
        kept = min(after.step, kept_until) - before.step
        if done > 0 and kept > 0:
            seconds += (after.time_ns - before.time_ns) / _SECOND * kept / done
    return seconds


def _redone(attempts: Sequence[Sequence[_Mark]], index: int) -> int:
    first, last = attempts[index][0].step, attempts[index][-1].step
    return int(max(0.0, last - max(first, _kept_until(attempts, index))))


def _phases(attempts: Sequence[Sequence[_Mark]], *, submitted_ns: Optional[int], end_ns: int) -> tuple[Phase, ...]:
    phases: list[Phase] = []
    if submitted_ns is not None:
        phases.append(Phase(kind="queued", start_ns=submitted_ns, end_ns=attempts[0][0].time_ns))
    next_starts = [attempt[0].time_ns for attempt in attempts[1:]] + [end_ns]
    for attempt, next_start_ns in zip(attempts, next_starts):
        phases.append(Phase(kind="training", start_ns=attempt[0].time_ns, end_ns=attempt[-1].time_ns))
        if next_start_ns > attempt[-1].time_ns:
            phases.append(Phase(kind="waiting", start_ns=attempt[-1].time_ns, end_ns=next_start_ns))
    return tuple(phases)
