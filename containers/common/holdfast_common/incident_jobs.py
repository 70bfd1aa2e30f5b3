"""
What an incident did to a job, and when the cluster was at full strength again. From the events of jobs alone, so all
of it is reported by the job, but for a hand-over, of which the agent tells.

A job goes on at ``job_started``, ``job_resumed`` or ``handed_over``; whatever of it is missing leaves None.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_number
from holdfast_common.faults import Remedy
from holdfast_common.incidents import Incident

_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_REPORTS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED)
_LEAVING_THE_NODE = (Remedy.RESTART_PROCESS.value, Remedy.RESET_GPU.value)


@dataclass(frozen=True)
class _Report:
    """At this time, so many steps were done."""

    time_ns: int
    step: float


@dataclass
class _Attempt:
    """A job from a start to the next one."""

    nodes: "frozenset[str]"
    start: Event
    first_step: Optional[float]
    reports: "list[_Report]" = field(default_factory=list)

    @property
    def reached(self) -> Optional[float]:
        steps = [report.step for report in self.reports] + ([] if self.first_step is None else [self.first_step])
        return max(steps, default=None)


@dataclass
class _Job:
    name: str
    attempts: "list[_Attempt]" = field(default_factory=list)
    lost_by_views: "list[_Report]" = field(default_factory=list)
    spares: "list[tuple[int, str]]" = field(default_factory=list)
    stood: "list[tuple[int, Optional[int]]]" = field(default_factory=list)
    """From the loss of a node until the job went on or ended; None where neither is told."""
    end_ns: Optional[int] = None

    def stands(self, event: Event) -> None:
        """A launcher of the job says that another one is lost; one that was left behind says that of all others."""
        waits = bool(self.stood) and self.stood[-1][1] is None
        if not waits and self.end_ns is None and self.attempts and event.node in self.attempts[-1].nodes:
            self.stood.append((event.time_ns, None))

    def moves(self, time_ns: int) -> None:
        """It goes on, or has ended."""
        if self.stood and self.stood[-1][1] is None:
            self.stood[-1] = (self.stood[-1][0], time_ns)

    def nodes_from(self, time_ns: int) -> "frozenset[str]":
        """Those that had ranks when the job went on at that time; its start may be told a moment later."""
        return next((one.nodes for one in self.attempts if one.start.time_ns >= time_ns), frozenset())


def with_jobs(incidents: Iterable[Incident], ordered: Sequence[Event]) -> "tuple[Incident, ...]":
    """The incidents with what they did to jobs, and when the cluster was at full strength again."""
    jobs = _jobs(ordered)
    handed_over = [event for event in ordered if event.kind == kinds.HANDED_OVER and event.source != "job"]
    told = [_hit(incident, jobs, handed_over) for incident in incidents]
    return tuple(replace(incident, strong_ns=_strong_ns(incident, told, jobs)) for incident in told)


def _jobs(ordered: Sequence[Event]) -> "dict[str, _Job]":
    jobs: dict[str, _Job] = {}
    for event in ordered:
        if event.source != "job":
            continue
        job = jobs.setdefault(event.job, _Job(event.job))
        step = detail_number(event, "step")
        if event.kind in _STARTS:
            nodes = frozenset(str(event.detail.get("nodes", "")).split(",")) - {""}
            job.attempts.append(_Attempt(nodes, event, step))
            job.end_ns = None
            job.moves(event.time_ns)
        elif event.kind in _REPORTS:
            if not job.attempts:
                job.attempts.append(_Attempt(frozenset(), event, step))
            if step is not None:
                job.attempts[-1].reports.append(_Report(event.time_ns, step))
        elif event.kind == kinds.VIEW_COMMITTED:
            job.lost_by_views.append(_Report(event.time_ns, detail_number(event, "lost_steps") or 0.0))
        elif event.kind == kinds.SPARE_READY:
            job.spares.append((event.time_ns, event.node))
        elif event.kind == kinds.LAUNCHER_LOST:
            job.stands(event)
        if event.kind in (kinds.JOB_FINISHED, kinds.JOB_STOPPED):
            job.end_ns = event.time_ns
            job.moves(event.time_ns)
    return jobs


def _hit(incident: Incident, jobs: "dict[str, _Job]", handed_over: Sequence[Event]) -> Incident:
    """With the job that ran on its node, from when it ran again."""
    handed = _handed_over(incident, handed_over)
    resumed = [
        (attempt.start.time_ns, job, index)
        for job in jobs.values()
        for index, attempt in enumerate(job.attempts)
        if _ends(incident, job.attempts, index)
    ]
    first = min(resumed, key=lambda one: (one[0], one[1].name), default=None)
    if handed is not None and (first is None or handed.time_ns <= first[0]):
        return _gone_on(incident, handed, jobs.get(_job_of(handed, incident, jobs)))
    if first is None:
        return _running_on(incident, jobs)
    time_ns, job, index = first
    before, attempt = job.attempts[index - 1] if index else None, job.attempts[index]
    since_ns = _since_ns(incident, before)
    lost = _lost(before, attempt.first_step, _by_views(job, since_ns, time_ns))
    reports = before.reports if before else []
    seen = [report.time_ns for report in reports if since_ns < report.time_ns <= time_ns]
    return replace(
        incident,
        job=job.name,
        job_nodes=tuple(sorted(before.nodes)) if before else (),
        resumed_ns=time_ns,
        steps_lost=lost,
        steps_redone=_redone(attempt, lost),
        stopped_s=(time_ns - max([since_ns, *seen])) / 1e9,
        thrown_away_s=None if before is None else _thrown_away_s(before, attempt.first_step),
    )


def _since_ns(incident: Incident, before: Optional[_Attempt]) -> int:
    """From when on what happens to the job is of this incident: what an earlier recovery cost is of another one."""
    return incident.start_ns if before is None else max(incident.start_ns, before.start.time_ns)


def _ends(incident: Incident, attempts: "Sequence[_Attempt]", index: int) -> bool:
    """
    Whether this start is how a job came back from the incident.

    The job ran on the node before; when its nodes are unknown, it may have. Nothing came back from what asked for
    nothing, and none of it is over for a job that goes on with the accused node.
    """
    attempt = attempts[index]
    time_ns = attempt.start.time_ns
    if attempt.start.kind not in _STARTS or time_ns < incident.start_ns:
        return False
    if index == 0 and attempt.start.kind != kinds.JOB_RESUMED:
        return False
    if index:
        before = attempts[index - 1]
        if before.nodes and incident.node not in before.nodes:
            return False
        if incident.restored_ns is not None and before.start.time_ns > incident.restored_ns:
            return False
    ended_ns = incident.withdrawn_ns if incident.withdrawn_ns is not None else incident.removed_ns
    if incident.restored_ns is None and ended_ns is not None and ended_ns < time_ns:
        return False
    if incident.remedy == Remedy.NONE.value and incident.out_ns is None:
        return False
    is_back = incident.restored_ns is not None and incident.restored_ns <= time_ns
    if is_back or incident.is_of_process or incident.node not in attempt.nodes:
        return True
    # The job goes on with a node that is still accused: only a remedy that leaves the node there may have been done.
    was_asked = incident.asked_ns is not None and incident.asked_ns <= time_ns
    return was_asked and incident.remedy in _LEAVING_THE_NODE


def _handed_over(incident: Incident, handed_over: Sequence[Event]) -> Optional[Event]:
    names = frozenset(incident.names)
    for event in handed_over:
        if event.time_ns < incident.start_ns:
            continue
        named = event.detail.get("incident")
        if named in names if named else event.node == incident.node and not _is_over(incident, event.time_ns):
            return event
    return None


def _is_over(incident: Incident, time_ns: int) -> bool:
    ended = (incident.restored_ns, incident.withdrawn_ns, incident.removed_ns)
    return incident.is_of_nobody or any(end is not None and end < time_ns for end in ended)


def _job_of(handed: Event, incident: Incident, jobs: "dict[str, _Job]") -> str:
    running = [job for job in jobs.values() if _attempt_at(job, handed.time_ns, incident.node) is not None]
    return handed.job or (running[0].name if len(running) == 1 else "")


def _attempt_at(job: _Job, time_ns: int, node: str) -> Optional[_Attempt]:
    """The attempt of a job that goes on at a time on a node."""
    begun = [attempt for attempt in job.attempts if attempt.start.time_ns <= time_ns]
    ended = job.end_ns is not None and job.end_ns < time_ns
    return begun[-1] if begun and not ended and node in begun[-1].nodes else None


def _gone_on(incident: Incident, handed: Event, job: Optional[_Job]) -> Incident:
    """A planned hand-over: the job never ended."""
    begun = [attempt for attempt in job.attempts if attempt.start.time_ns < handed.time_ns] if job else []
    attempt = begun[-1] if begun else None
    step = detail_number(handed, "step")
    lost = _lost(attempt, step, _by_views(job, _since_ns(incident, attempt), handed.time_ns) if job else 0)
    later = [] if attempt is None else [report for report in attempt.reports if report.time_ns >= handed.time_ns]
    done = (
        None if lost is None or step is None else max(0, min(lost, int(max([r.step for r in later] or [step]) - step)))
    )
    return replace(
        incident,
        job=job.name if job else handed.job,
        job_nodes=tuple(sorted(attempt.nodes)) if attempt else (),
        resumed_ns=handed.time_ns,
        resumed_by_agent=True,
        steps_lost=lost,
        steps_redone=done,
        stopped_s=handed.duration_s,
        thrown_away_s=0.0 if lost == 0 else None,
    )


def _running_on(incident: Incident, jobs: "dict[str, _Job]") -> Incident:
    """The job that runs on the node and has not come back, or did not need to."""
    for job in jobs.values():
        attempt = _attempt_at(job, incident.start_ns, incident.node)
        if attempt is not None:
            return replace(incident, job=job.name, job_nodes=tuple(sorted(attempt.nodes)))
    return incident


def _by_views(job: _Job, start_ns: int, end_ns: int) -> int:
    return int(max((one.step for one in job.lost_by_views if start_ns <= one.time_ns <= end_ns), default=0.0))


def _lost(before: Optional[_Attempt], step: Optional[float], by_views: int) -> Optional[int]:
    """Steps that were reported and lie after the step that the job went on from, or as many as its launchers told."""
    reached = None if before is None else max((r.step for r in before.reports), default=before.first_step)
    if reached is None or step is None:
        return by_views or None
    return max(int(reached - step), by_views, 0)


def _redone(attempt: _Attempt, lost: Optional[int]) -> Optional[int]:
    if lost is None or attempt.first_step is None or attempt.reached is None:
        return None
    return min(lost, int(attempt.reached - attempt.first_step))


def _thrown_away_s(before: _Attempt, step: Optional[float]) -> Optional[float]:
    """How long the reported steps after this one had taken, in proportion where a report lies across it."""
    if step is None or before.first_step is None:
        return None
    marks = [_Report(before.start.time_ns, before.first_step), *before.reports]
    seconds = 0.0
    for one, other in zip(marks, marks[1:]):
        done, kept = other.step - one.step, max(0.0, min(other.step, step) - one.step)
        if done > 0 and kept < done:
            seconds += (other.time_ns - one.time_ns) / 1e9 * (1 - kept / done)
    return seconds


def _strong_ns(incident: Incident, told: "Sequence[Incident]", jobs: "dict[str, _Job]") -> Optional[int]:
    """
    When the node was back, no other was missing, and the job had its spare again and did not stand still.

    A job that went on before its node was back had a spare to take; it has one again when the new instance says so. Of
    several that were out at a time any may, since the others have taken ranks, and so may one that was lost later, of
    which the new instance may have the ranks. A job that had no spare left waits for the node, and goes on after that;
    an instance that gets no rank then says that it is a spare before the ranks are together.
    """
    back_ns = incident.resumed_ns if incident.is_of_process else incident.restored_ns
    if back_ns is None or (incident.withdrawn_ns is not None and incident.restored_ns is None):
        return None
    strong_ns = max(back_ns, incident.resumed_ns or 0)
    job = jobs.get(incident.job)
    together = [one for one in told if one is incident or _out_with(incident, one)]
    if job is not None and any(_took_a_spare(one) for one in together):
        later = [one for one in told if one.job == incident.job and (one.out_ns or 0) > strong_ns]
        back = {one.replacement or one.node for one in [*together, *later]}
        busy = job.nodes_from(strong_ns)
        ready = [
            max(time_ns, strong_ns)
            for time_ns, node in job.spares
            if node in back and (time_ns >= strong_ns or (time_ns >= back_ns and node not in busy))
        ]
        ended = [] if job.end_ns is None else [job.end_ns]
        if not ready and not ended:
            return None
        strong_ns = max(strong_ns, min(ready + ended))
    gaps = [
        (one.out_ns, one.restored_ns if one.restored_ns is not None else one.removed_ns)
        for one in told
        if one.out_ns is not None
    ]
    return _whole_from(strong_ns, [*gaps, *(job.stood if job is not None else ())])


def _took_a_spare(incident: Incident) -> bool:
    back_ns = incident.restored_ns
    return incident.resumed_ns is not None and back_ns is not None and incident.resumed_ns < back_ns


def _out_with(incident: Incident, other: Incident) -> bool:
    """Whether nodes of one job were missing at the same time."""
    if incident.job != other.job or incident.out_ns is None or other.out_ns is None:
        return False
    first, second = sorted((incident, other), key=lambda one: one.out_ns or 0)
    return first.restored_ns is None or (second.out_ns or 0) < first.restored_ns


def _whole_from(time_ns: int, gaps: "Sequence[tuple[int, Optional[int]]]") -> Optional[int]:
    """The first moment from then on that is in no gap."""
    while True:
        around = [end for start, end in gaps if start <= time_ns and (end is None or time_ns < end)]
        if not around:
            return time_ns
        if None in around:
            return None
        time_ns = max(end for end in around if end is not None)
