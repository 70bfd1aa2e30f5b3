"""
Effect of an incident on a job, and the return to full strength. From the events of jobs, so it is reported by the job,
except for the agent's hand-overs.

A job continues at ``job_started``, ``job_resumed`` or ``handed_over``; missing reports leave None.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event, detail_step
from holdfast_common.faults import Remedy
from holdfast_common.incidents import Incident
from holdfast_common.stories.gaps import Gaps
from holdfast_common.stories.history import Attempt, History, Job

_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_LEAVING_THE_NODE = (Remedy.RESTART_PROCESS.value, Remedy.RESET_GPU.value)


def with_jobs(incidents: Iterable[Incident], history: History) -> "tuple[Incident, ...]":
    reported = [_hit(incident, history) for incident in incidents]
    of_job: dict[str, list[Incident]] = {}
    for incident in reported:
        of_job.setdefault(incident.job, []).append(incident)
    missing = Gaps(
        (one.out_ns, one.restored_ns if one.restored_ns is not None else one.removed_ns)
        for one in reported
        if one.out_ns is not None
    )
    stood = {name: Gaps(job.stood) for name, job in history.jobs.items() if job.stood}
    found = []
    for incident in reported:
        strong_ns = _strong_ns(incident, of_job[incident.job], history.jobs.get(incident.job))
        gaps = [missing, *([stood[incident.job]] if incident.job in stood else [])]
        found.append(replace(incident, strong_ns=_whole_from(strong_ns, gaps)))
    return tuple(found)


def _hit(incident: Incident, history: History) -> Incident:
    jobs = history.jobs
    handed, start_ns = _handed_over(incident, history), incident.start_ns
    resumed = [
        (job.starts_ns[index], job, index)
        for job in history.maybe_on(incident.node)
        if job.starts_ns[-1] >= start_ns and (index := _ended_by(incident, job, start_ns)) is not None
    ]
    first = min(resumed, key=lambda one: (one[0], one[1].name), default=None)
    incident = replace(incident, handed_over_ns=None if handed is None else handed.time_ns)
    if handed is not None and (first is None or handed.time_ns <= first[0]):
        return _gone_on(incident, handed, jobs.get(_job_of(handed, incident, history)))
    if first is None:
        return _running_on(incident, history)
    time_ns, job, index = first
    before, attempt = job.attempts[index - 1] if index else None, job.attempts[index]
    since_ns = _since_ns(incident, before)
    lost = _lost(before, attempt.first_step, _by_views(job, since_ns, time_ns))
    reported_ns = before.reports.latest_ns(time_ns) if before else None
    return replace(
        incident,
        job=job.name,
        job_nodes=tuple(sorted(before.nodes)) if before else (),
        resumed_ns=time_ns,
        steps_lost=lost,
        steps_redone=_redone(attempt, lost),
        stopped_s=(time_ns - max(since_ns, reported_ns or 0)) / 1e9,
        thrown_away_s=None if before is None else before.thrown_away_s(attempt.first_step),
    )


def _since_ns(incident: Incident, before: Optional[Attempt]) -> int:
    """Start of this incident's effects: an earlier recovery's cost belongs to another one."""
    return incident.start_ns if before is None else max(incident.start_ns, before.start.time_ns)


def _ended_by(incident: Incident, job: Job, start_ns: int) -> Optional[int]:
    """First start by which the job came back, if it ran on the node; incidents without a remedy end nothing."""
    if incident.remedy == Remedy.NONE.value and incident.out_ns is None:
        return None
    ended_ns = incident.withdrawn_ns if incident.withdrawn_ns is not None else incident.removed_ns
    for index in range(job.begun_before(start_ns), len(job.attempts)):
        if incident.restored_ns is None:
            if ended_ns is not None and ended_ns < job.starts_ns[index]:
                return None
        elif index and job.starts_ns[index - 1] > incident.restored_ns:
            return None
        if _ends(incident, job.attempts, index):
            return index
    return None


def _ends(incident: Incident, attempts: "Sequence[Attempt]", index: int) -> bool:
    attempt = attempts[index]
    if attempt.start.kind not in _STARTS or (index == 0 and attempt.start.kind != kinds.JOB_RESUMED):
        return False
    if index and attempts[index - 1].nodes and incident.node not in attempts[index - 1].nodes:
        return False
    time_ns = attempt.start.time_ns
    is_back = incident.restored_ns is not None and incident.restored_ns <= time_ns
    if is_back or incident.is_of_process or incident.node not in attempt.nodes:
        return True
    # The job goes on with a node that is still accused: only a remedy that leaves the node there may have been done.
    was_asked = incident.asked_ns is not None and incident.asked_ns <= time_ns
    return was_asked and incident.remedy in _LEAVING_THE_NODE


def _handed_over(incident: Incident, history: History) -> Optional[Event]:
    found = [
        event
        for event in history.handed_over(incident.names, incident.node)
        if event.time_ns >= incident.start_ns
        and (event.detail.get("incident") or not _is_over(incident, event.time_ns))
    ]
    return min(found, key=lambda event: event.time_ns, default=None)


def _is_over(incident: Incident, time_ns: int) -> bool:
    ended = (incident.restored_ns, incident.withdrawn_ns, incident.removed_ns)
    return incident.needs_no_repair or any(end is not None and end < time_ns for end in ended)


def _job_of(handed: Event, incident: Incident, history: History) -> str:
    running = [job for job in history.on(incident.node) if _attempt_at(job, handed.time_ns, incident.node) is not None]
    return handed.job or (running[0].name if len(running) == 1 else "")


def _attempt_at(job: Job, time_ns: int, node: str) -> Optional[Attempt]:
    begun = bisect_right(job.starts_ns, time_ns)
    ended = job.end_ns is not None and job.end_ns < time_ns
    return job.attempts[begun - 1] if begun and not ended and node in job.attempts[begun - 1].nodes else None


def _gone_on(incident: Incident, handed: Event, job: Optional[Job]) -> Incident:
    """Handle a planned hand-over: the job never ended."""
    begun = job.begun_before(handed.time_ns) if job else 0
    attempt = job.attempts[begun - 1] if job and begun else None
    step = detail_step(handed)
    lost = _lost(attempt, step, _by_views(job, _since_ns(incident, attempt), handed.time_ns) if job else 0)
    done = None
    if lost is not None and step is not None:
        reached = None if attempt is None else attempt.reports.most_from(handed.time_ns)
        done = max(0, min(lost, int((step if reached is None else reached) - step)))
    return replace(
        incident,
        job=job.name if job else handed.job,
        job_nodes=tuple(sorted(attempt.nodes)) if attempt else (),
        resumed_ns=handed.time_ns,
        steps_lost=lost,
        steps_redone=done,
        stopped_s=handed.duration_s,
        thrown_away_s=0.0 if lost == 0 else None,
    )


def _running_on(incident: Incident, history: History) -> Incident:
    """Job that runs on the node and has not come back, or did not need to."""
    for job in history.on(incident.node):
        attempt = _attempt_at(job, incident.start_ns, incident.node)
        if attempt is not None:
            return replace(incident, job=job.name, job_nodes=tuple(sorted(attempt.nodes)))
    return incident


def _by_views(job: Job, start_ns: int, end_ns: int) -> int:
    return int(job.lost_by_views.most_from(start_ns, until_ns=end_ns) or 0.0)


def _lost(before: Optional[Attempt], step: Optional[float], by_views: int) -> Optional[int]:
    reached = None if before is None else before.reported
    if reached is None or step is None:
        return by_views or None
    return max(int(reached - step), by_views, 0)


def _redone(attempt: Attempt, lost: Optional[int]) -> Optional[int]:
    if lost is None or attempt.first_step is None or attempt.reached is None:
        return None
    return min(lost, int(attempt.reached - attempt.first_step))


def _strong_ns(incident: Incident, of_its_job: "Sequence[Incident]", job: Optional[Job]) -> Optional[int]:
    """
    Time at which the node was back and the job had its spare again.

    A job that continued before its node was back had used a spare; it has one again when the new instance reports so.
    Of several lost at a time any may. A job without a spare waits for the node.
    """
    back_ns = incident.resumed_ns if incident.is_of_process else incident.restored_ns
    if back_ns is None or (incident.withdrawn_ns is not None and incident.restored_ns is None):
        return None
    strong_ns = max(back_ns, incident.resumed_ns or 0)
    if job is None:
        return strong_ns
    together = [one for one in of_its_job if one is incident or _out_with(incident, one)]
    if not any(_took_a_spare(one) for one in together):
        return strong_ns
    later = [one for one in of_its_job if (one.out_ns or 0) > strong_ns]
    back = {one.replacement or one.node for one in [*together, *later]}
    busy = job.nodes_from(strong_ns)
    ready = [
        max(time_ns, strong_ns)
        for time_ns, node in job.spares
        if node in back and (time_ns >= strong_ns or (time_ns >= back_ns and node not in busy))
    ]
    ended = [] if job.end_ns is None else [job.end_ns]
    return max(strong_ns, min(ready + ended)) if ready or ended else None


def _whole_from(time_ns: Optional[int], gaps: "Sequence[Gaps]") -> Optional[int]:
    while time_ns is not None:
        later_ns: Optional[int] = time_ns
        for one in gaps:
            later_ns = None if later_ns is None else one.over_at(later_ns)
        if later_ns == time_ns:
            break
        time_ns = later_ns
    return time_ns


def _took_a_spare(incident: Incident) -> bool:
    back_ns = incident.restored_ns
    return incident.resumed_ns is not None and back_ns is not None and incident.resumed_ns < back_ns


def _out_with(incident: Incident, other: Incident) -> bool:
    if incident.out_ns is None or other.out_ns is None:
        return False
    first, second_ns = (incident, other.out_ns) if incident.out_ns <= other.out_ns else (other, incident.out_ns)
    return first.restored_ns is None or second_ns < first.restored_ns
