"""
From events to a timeline: incidents with their seconds, the phases of each job, its goodput and loss.

Pure and total: events in any order, with repeats and gaps. Unknown is None, never a guess.

Goodput is the share of a job's wall time in steps that still count at the end. Queueing before the first start is
outside; restarts, checkpoints, waiting for a node, and lost steps are not productive. A job without a finish is
measured up to the latest event.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_number, detail_step
from holdfast_common.incidents import Incident
from holdfast_common.ordered import in_order
from holdfast_common.stories import History, Marks, Stall, Stalls, Stories, with_jobs

_SECOND = 1e9
_STARTS = frozenset((kinds.JOB_STARTED, kinds.JOB_RESUMED))
_RUNNING = _STARTS | {kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED}
_SIZED = _STARTS | {kinds.JOB_RESIZED}


@dataclass(frozen=True)
class Phase:
    """``queued``, ``training`` or ``waiting`` (between two attempts, or since the last)."""

    kind: str
    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.start_ns) / _SECOND


@dataclass(frozen=True)
class JobTimeline:
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
        return (self.end_ns - self.started_ns) / _SECOND

    @property
    def goodput(self) -> Optional[float]:
        """Productive share of the wall time; None when no time has passed."""
        return self.productive_s / self.wall_s if self.wall_s > 0 else None


@dataclass(frozen=True)
class Timeline:
    incidents: tuple[Incident, ...]
    jobs: tuple[JobTimeline, ...]


def timeline(events: Iterable[Event]) -> Timeline:
    story = IncidentReader()
    jobs: dict[str, JobReader] = {}
    latest_ns = 0
    for event in in_order(events):
        story.add(event)
        latest_ns = event.time_ns
        if event.source == "job" or event.kind == kinds.JOB_SUBMITTED:
            job = jobs.get(event.job)
            if job is None:
                job = jobs[event.job] = JobReader(event.job)
            job.add(event)
    lines = [job.timeline(latest_ns) for job in jobs.values()]
    return Timeline(
        incidents=story.incidents(),
        jobs=tuple(sorted((line for line in lines if line is not None), key=lambda line: line.started_ns)),
    )


class IncidentReader:
    def __init__(self) -> None:
        self._stories, self._history, self._stalls = Stories(), History(), Stalls()

    def add(self, event: Event) -> None:
        self._stories.add(event)
        self._history.add(event)
        self._stalls.add(event)

    def incidents(self) -> "tuple[Incident, ...]":
        return with_jobs(self._stories.incidents(), self._history)

    def stalls(self, *, now_ns: int = 0, runs: "Callable[[str], bool]" = lambda _job: False) -> "tuple[Stall, ...]":
        """
        Return stalls of jobs, as the jobs report them.

        Args:
            now_ns: For those that no launcher has reported yet.
            runs: Return True for a job that has not ended. Default: none is known to run.
        """
        return (*self._stalls.found(), *self._stalls.standing(now_ns=now_ns, runs=runs))

    @property
    def groups(self) -> "Mapping[str, str]":
        return self._stories.groups


class JobReader:
    """One job from its events in order of time; its timeline costs as much as it has attempts, not events."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._submitted_ns: Optional[int] = None
        self._finished_ns: Optional[int] = None
        self._first_loss: Optional[float] = None
        self._last_loss: Optional[float] = None
        self._sizes: list[tuple[int, int]] = []
        self._attempts: list[Marks] = []
        """Split at each start. Within an attempt steps never go back, so a late, smaller report is no mark."""
        self._useful_s = 0.0
        """Of the last attempt."""
        self._ended: list[tuple[float, float, int]] = []
        """Of each other attempt: the step up to which its work counts, and its productive seconds and redone steps."""
        self._ended_s = 0.0

    def add(self, event: Event) -> None:
        kind = event.kind
        if kind == kinds.JOB_SUBMITTED:
            self._submitted_ns = event.time_ns if self._submitted_ns is None else self._submitted_ns
        if kind in _SIZED:
            self._resize(event)
        if kind not in _RUNNING:
            return
        step = detail_step(event)
        if kind in _STARTS or not self._attempts:
            # Where the start is missing, nothing is known before this report.
            self._attempts.append(Marks())
            self._attempts[-1].add(event.time_ns, step or 0.0)
            self._useful_s = 0.0
        else:
            self._report(event.time_ns, step)
        if kind == kinds.JOB_FINISHED:
            self._finished_ns = event.time_ns
        loss = detail_number(event, "loss")
        if loss is not None:
            self._first_loss, self._last_loss = loss if self._first_loss is None else self._first_loss, loss

    def _report(self, time_ns: int, step: Optional[float]) -> None:
        marks = self._attempts[-1]
        reached = marks.steps[-1]
        if step is not None and step > reached:
            self._useful_s += (time_ns - marks.times_ns[-1]) / _SECOND
        marks.add(time_ns, reached if step is None else max(step, reached))

    def _resize(self, event: Event) -> None:
        size = detail_number(event, "world_size")
        if size is not None and (not self._sizes or self._sizes[-1][1] != size):
            self._sizes.append((int(detail_step(event) or 0), int(size)))

    def timeline(self, latest_ns: int) -> Optional[JobTimeline]:
        """Return the timeline up to ``latest_ns``; None for a job that never ran."""
        attempts = self._attempts
        if not attempts:
            return None
        started_ns, ended_ns = attempts[0].times_ns[0], attempts[-1].times_ns[-1]
        finished_ns = self._finished_ns if self._finished_ns is not None and ended_ns <= self._finished_ns else None
        end_ns = max(latest_ns, ended_ns) if finished_ns is None else finished_ns
        known = self._submitted_ns is not None and self._submitted_ns <= started_ns
        submitted_ns = self._submitted_ns if known else None
        self._end_attempts()
        return JobTimeline(
            job=self.job,
            submitted_ns=submitted_ns,
            started_ns=started_ns,
            finished_ns=finished_ns,
            end_ns=end_ns,
            phases=_phases(attempts, submitted_ns=submitted_ns, end_ns=end_ns),
            attempts=len(attempts),
            steps=int(attempts[-1].steps[-1]),
            steps_redone=sum(redone for _, _, redone in self._ended),
            productive_s=self._ended_s + self._useful_s,
            first_loss=self._first_loss,
            last_loss=self._last_loss,
            sizes=tuple(self._sizes),
        )

    def productive_s(self) -> float:
        """Seconds in steps that still count."""
        self._end_attempts()
        return self._ended_s + self._useful_s

    def _end_attempts(self) -> None:
        """Account for attempts before the last one, each again only when a later one started before its end."""
        if len(self._ended) == len(self._attempts) - 1:
            return
        kept = _kept_until(self._attempts)[:-1]
        for place, until in enumerate(kept):
            if place == len(self._ended) or self._ended[place][0] != until:
                marks = self._attempts[place]
                self._ended[place : place + 1] = [(until, _productive_s(marks, until), _redone(marks, until))]
        self._ended_s = sum(seconds for _, seconds, _ in self._ended)


def _kept_until(attempts: Sequence[Marks]) -> "list[float]":
    """For each attempt the step up to which its work counts: no later attempt started before it."""
    kept = [float("inf")]
    for later in reversed(attempts[1:]):
        kept.append(min(kept[-1], later.steps[0]))
    return kept[::-1]


def _productive_s(marks: Marks, kept_until: float) -> float:
    seconds = 0.0
    before_ns, before = marks.times_ns[0], marks.steps[0]
    for time_ns, step in zip(marks.times_ns, marks.steps):
        done, kept = step - before, min(step, kept_until) - before
        if done > 0 and kept > 0:
            seconds += (time_ns - before_ns) / _SECOND * kept / done
        before_ns, before = time_ns, step
    return seconds


def _redone(marks: Marks, kept_until: float) -> int:
    first, last = marks.steps[0], marks.steps[-1]
    return int(max(0.0, last - max(first, kept_until)))


def _phases(attempts: Sequence[Marks], *, submitted_ns: Optional[int], end_ns: int) -> tuple[Phase, ...]:
    phases: list[Phase] = []
    if submitted_ns is not None:
        phases.append(Phase(kind="queued", start_ns=submitted_ns, end_ns=attempts[0].times_ns[0]))
    next_starts = [attempt.times_ns[0] for attempt in attempts[1:]] + [end_ns]
    for attempt, next_start_ns in zip(attempts, next_starts):
        last_ns = attempt.times_ns[-1]
        phases.append(Phase(kind="training", start_ns=attempt.times_ns[0], end_ns=last_ns))
        if next_start_ns > last_ns:
            phases.append(Phase(kind="waiting", start_ns=last_ns, end_ns=next_start_ns))
    return tuple(phases)
