"""Attempts of each job, and the reports in between."""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_number, detail_step
from holdfast_common.stories.marks import Marks

_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_REPORTS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED)
_ENDS = (kinds.JOB_FINISHED, kinds.JOB_STOPPED)
_RELEVANT = frozenset((*_STARTS, *_REPORTS, *_ENDS, kinds.VIEW_COMMITTED, kinds.SPARE_READY, kinds.LAUNCHER_LOST))


@dataclass
class Attempt:
    nodes: "frozenset[str]"
    start: Event
    first_step: Optional[float]
    reports: Marks = field(default_factory=Marks)
    _thrown_away_s: "dict[float, Optional[float]]" = field(default_factory=dict)

    @property
    def reported(self) -> Optional[float]:
        return self.first_step if self.reports.most is None else self.reports.most

    @property
    def reached(self) -> Optional[float]:
        return max((step for step in (self.reports.most, self.first_step) if step is not None), default=None)

    def thrown_away_s(self, step: Optional[float]) -> Optional[float]:
        """Duration of the reported steps after this one, in proportion where a report spans it."""
        if step is None or self.first_step is None:
            return None
        if step not in self._thrown_away_s:
            self._thrown_away_s[step] = self._seconds_after(step, self.first_step)
        return self._thrown_away_s[step]

    def _seconds_after(self, step: float, first_step: float) -> float:
        seconds, before_ns, before = 0.0, self.start.time_ns, first_step
        for time_ns, reached in zip(self.reports.times_ns, self.reports.steps):
            done, kept = reached - before, max(0.0, min(reached, step) - before)
            if done > 0 and kept < done:
                seconds += (time_ns - before_ns) / 1e9 * (1 - kept / done)
            before_ns, before = time_ns, reached
        return seconds


@dataclass
class Job:
    name: str
    number: int
    """In the order of first reports."""
    attempts: "list[Attempt]" = field(default_factory=list)
    starts_ns: "list[int]" = field(default_factory=list)
    """Of the attempts."""
    lost_by_views: Marks = field(default_factory=Marks)
    spares: "list[tuple[int, str]]" = field(default_factory=list)
    stood: "list[tuple[int, Optional[int]]]" = field(default_factory=list)
    """From the loss of a node until the job went on or ended; None if neither is reported."""
    end_ns: Optional[int] = None

    def add(self, event: Event) -> None:
        kind = event.kind
        if kind in _REPORTS:
            self._report(event)
        elif kind in _STARTS:
            names = str(event.detail.get("nodes", "")).split(",")
            self._begin(frozenset(map(sys.intern, names)) - {""}, event)
            self.end_ns = None
            self._moves(event.time_ns)
        elif kind == kinds.VIEW_COMMITTED:
            self.lost_by_views.add(event.time_ns, detail_number(event, "lost_steps") or 0.0)
        elif kind == kinds.SPARE_READY:
            self.spares.append((event.time_ns, event.node))
        elif kind == kinds.LAUNCHER_LOST:
            self._stands(event)
        if kind in _ENDS:
            self.end_ns = event.time_ns
            self._moves(event.time_ns)

    def begun_before(self, time_ns: int) -> int:
        return bisect_left(self.starts_ns, time_ns)

    def nodes_from(self, time_ns: int) -> "frozenset[str]":
        """Nodes with ranks when the job continued at that time; its start may be reported later."""
        later = self.attempts[self.begun_before(time_ns) :][:1]
        return later[0].nodes if later else frozenset()

    def _begin(self, nodes: "frozenset[str]", event: Event) -> None:
        self.attempts.append(Attempt(nodes, event, detail_step(event)))
        self.starts_ns.append(event.time_ns)

    def _report(self, event: Event) -> None:
        if not self.attempts:
            self._begin(frozenset(), event)
        step = detail_step(event)
        if step is not None:
            self.attempts[-1].reports.add(event.time_ns, step)

    def _stands(self, event: Event) -> None:
        """Handle a lost launcher; one that was left behind reports all others as lost."""
        waits = bool(self.stood) and self.stood[-1][1] is None
        if not waits and self.end_ns is None and self.attempts and event.node in self.attempts[-1].nodes:
            self.stood.append((event.time_ns, None))

    def _moves(self, time_ns: int) -> None:
        if self.stood and self.stood[-1][1] is None:
            self.stood[-1] = (self.stood[-1][0], time_ns)


class History:
    """All jobs, from events added in order of time."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._of_node: dict[str, list[Job]] = {}
        self._of_any_node: list[Job] = []
        """Jobs that may have run on any: not all of their starts name their nodes."""
        self._handed_over: dict[object, list[Event]] = {}
        """By the incident that an event names, or else by (its node,)."""

    def add(self, event: Event) -> None:
        if event.kind == kinds.HANDED_OVER and event.source != "job":
            named = event.detail.get("incident")
            self._handed_over.setdefault(named or (event.node,), []).append(event)
        elif event.source == "job" and event.kind in _RELEVANT:
            job = self.jobs.get(event.job)
            if job is None:
                job = self.jobs[event.job] = Job(event.job, len(self.jobs))
            known = len(job.attempts)
            job.add(event)
            if len(job.attempts) > known:
                self._place(job)

    def on(self, node: str) -> "list[Job]":
        return _once(self._of_node.get(node, ()))

    def maybe_on(self, node: str) -> "list[Job]":
        """These, and those with an attempt on unknown nodes."""
        return _once((*self._of_node.get(node, ()), *self._of_any_node))

    def _place(self, job: Job) -> None:
        attempt = job.attempts[-1]
        if not attempt.nodes or (len(job.attempts) == 1 and attempt.start.kind == kinds.JOB_RESUMED):
            self._of_any_node.append(job)
        for node in attempt.nodes:
            own = self._of_node.setdefault(node, [])
            if not own or own[-1] is not job:
                own.append(job)

    def handed_over(self, names: Iterable[str], node: str) -> "Iterator[Event]":
        """Hand-overs that name one of these incidents, or name none and are of the node."""
        for key in (*names, (node,)):
            yield from self._handed_over.get(key, ())


def _once(jobs: Iterable[Job]) -> "list[Job]":
    unique = {job.number: job for job in jobs}
    return [unique[number] for number in sorted(unique)]
