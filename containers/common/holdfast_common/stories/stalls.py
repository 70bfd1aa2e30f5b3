"""
Stalls of jobs, from their events: from the last finished step until the job continues, is stopped, or still stands.

A recovery is a stall if it was detected long after the last step: a rank that dies is noticed at once, one that hangs
after a deadline.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_step

LEAST_S = 5.0
"""Of a silence before it was detected."""
MULTIPLE = 3.0
"""Of the job's mean step, for the same."""
STANDS_S, STANDS_MULTIPLE = 60.0, 20.0
"""The same for a silence that no launcher has reported."""
_STARTS = frozenset((kinds.JOB_STARTED, kinds.JOB_RESUMED))
_STEPS = frozenset((kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED))


@dataclass(frozen=True)
class Stall:
    """
    Standstill of a job.

    Args:
        step: Finished before it.
        start_ns: Time of that step.
        noticed_ns: Detection by a launcher; None before it.
        resumed_ns, stopped_ns: End, if it has ended.
        evidence: Reason that a launcher gives.
    """

    job: str
    step: Optional[int]
    start_ns: int
    noticed_ns: Optional[int] = None
    resumed_ns: Optional[int] = None
    stopped_ns: Optional[int] = None
    evidence: str = ""

    @property
    def id(self) -> str:
        text = f"stall\0{self.job}\0{self.step}\0{self.start_ns}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]

    @property
    def end_ns(self) -> Optional[int]:
        return self.resumed_ns if self.resumed_ns is not None else self.stopped_ns


@dataclass
class _Job:
    began: "tuple[int, float]"
    last: "tuple[int, float]"
    ended: bool = False
    stall: Optional[Stall] = None
    """Detected, and not resumed yet."""

    @property
    def step_s(self) -> float:
        steps = self.last[1] - self.began[1]
        return (self.last[0] - self.began[0]) / 1e9 / steps if steps > 0 else 0.0


class Stalls:
    """All jobs', from events added in order of time."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._found: list[Stall] = []

    def add(self, event: Event) -> None:
        if event.source != "job" or not event.job:
            return
        job = self._jobs.get(event.job)
        if event.kind in _STARTS:
            self._begin(event, job)
        elif job is None:
            return
        elif event.kind in _STEPS:
            step = detail_step(event)
            if step is not None and step > job.last[1]:
                job.last = event.time_ns, step
        elif event.kind == kinds.RECOVERY_DETECTED:
            self._detect(event, job)
        elif event.kind in (kinds.JOB_STOPPED, kinds.JOB_FINISHED):
            self._end(event, job)

    def found(self) -> "tuple[Stall, ...]":
        """Stalls that a launcher has reported."""
        waiting = [job.stall for job in self._jobs.values() if job.stall is not None]
        return tuple(sorted((*self._found, *waiting), key=lambda one: one.start_ns))

    def standing(self, *, now_ns: int, runs: "Callable[[str], bool]") -> "Iterator[Stall]":
        """Yield stalls that no launcher has reported; ``runs``: return True for a job that has not ended."""
        for name, job in self._jobs.items():
            silent_s = (now_ns - job.last[0]) / 1e9
            stands = silent_s > max(STANDS_S, STANDS_MULTIPLE * job.step_s)
            if stands and job.last[1] > job.began[1] and not job.ended and job.stall is None and runs(name):
                yield Stall(job=name, step=int(job.last[1]), start_ns=job.last[0])

    def _begin(self, event: Event, job: Optional[_Job]) -> None:
        if job is not None and job.stall is not None:
            self._found.append(replace(job.stall, resumed_ns=event.time_ns))
        at = event.time_ns, detail_step(event) or 0.0
        self._jobs[event.job] = _Job(began=at, last=at)

    def _detect(self, event: Event, job: _Job) -> None:
        silent_s = event.duration_s or 0.0
        if event.detail.get("planned") or job.stall is not None or silent_s < max(LEAST_S, MULTIPLE * job.step_s):
            return
        start_ns = event.time_ns - int(silent_s * 1e9)
        job.stall = Stall(
            job=event.job, step=int(job.last[1]), start_ns=start_ns, noticed_ns=event.time_ns, evidence=event.evidence
        )

    def _end(self, event: Event, job: _Job) -> None:
        silent_s = (event.time_ns - job.last[0]) / 1e9
        stopped = event.kind == kinds.JOB_STOPPED and not job.ended
        if stopped and silent_s > max(STANDS_S, STANDS_MULTIPLE * job.step_s):
            before = job.stall or Stall(job=event.job, step=int(job.last[1]), start_ns=job.last[0])
            noticed_ns = before.noticed_ns or event.time_ns
            self._found.append(
                replace(
                    before, noticed_ns=noticed_ns, stopped_ns=event.time_ns, evidence=event.evidence or before.evidence
                )
            )
        elif job.stall is not None:
            self._found.append(replace(job.stall, stopped_ns=event.time_ns))
        job.ended, job.stall = True, None
