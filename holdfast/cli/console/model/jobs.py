"""Jobs of the page: a row for each, and series for its plots. Pure."""

import math
from collections.abc import Iterable
from typing import Any

from holdfast.cli.console.model.numbers import milliseconds, rounded
from holdfast.cli.console.state import JobState
from holdfast_common import Incident, kinds, plain

Json = dict[str, Any]


def jobs_of(jobs: Iterable[JobState], incidents: Iterable[Incident], *, now_ns: int) -> list[Json]:
    """Rows of jobs, running ones first, then by the newest report."""
    known = [*incidents]
    faults: dict[str, int] = {}
    for incident in known:
        if incident.job:
            faults[incident.job] = faults.get(incident.job, 0) + 1
    order = sorted(jobs, key=lambda job: (bool(job.ended_by), -job.seen_ns))
    return [
        _row(job, faults=faults.get(job.job, 0), lost=_lost_node(job, known, now_ns), now_ns=now_ns) for job in order
    ]


def _lost_node(job: JobState, incidents: Iterable[Incident], now_ns: int) -> str:
    """Fault that took a node of the job out of service, and no step since; empty without one."""
    nodes = frozenset(job.nodes)
    since_ns = job.started_ns if job.is_behind(now_ns) else job.moved_ns
    for incident in incidents:
        if incident.node in nodes and incident.out_ns is not None and incident.out_ns > since_ns:
            return f"{incident.fault or 'fault'} on {incident.host or incident.node}"
    return ""


def _row(job: JobState, *, faults: int, lost: str, now_ns: int) -> Json:
    found = job.timeline(job.ended_ns or (max(now_ns, job.seen_ns) if job.is_behind(now_ns) else job.moved_ns))
    state, level, note = _state(job, lost=lost, now_ns=now_ns)
    return {
        "id": plain(job.job),
        "state": state,
        "level": level,
        "note": plain(note),
        "step": rounded(job.step) if found is not None else None,
        "steps": rounded(job.steps),
        "rate": None if job.ended_by or state != "running" else rounded(job.rate()),
        "loss": rounded(job.loss),
        "goodput": None if found is None else rounded(found.goodput),
        "redone": 0 if found is None else found.steps_redone,
        "attempts": 0 if found is None else found.attempts,
        "world_size": job.world_size,
        "nodes": len(job.nodes),
        "spares": len(job.spares),
        "faults": faults,
        "checkpoint": rounded(job.checkpoint_step),
        "started": milliseconds(job.began_ns),
        "ended": milliseconds(job.ended_ns),
        "seen": milliseconds(job.seen_ns or None),
    }


def _state(job: JobState, *, lost: str, now_ns: int) -> tuple[str, str, str]:
    """Return state, level and reason."""
    if job.ended_by == kinds.JOB_FINISHED:
        return "finished", "", ""
    if job.ended_by:
        return "stopped", "bad", job.why
    if job.began_ns is None:
        return "submitted", "", "no step yet"
    if lost or job.trouble_ns is not None:
        what = {kinds.RANK_LOST: "a rank was lost", kinds.LAUNCHER_LOST: "a node was lost"}
        return "recovering", "bad", lost or what[job.trouble]
    if job.is_silent(now_ns):
        return "silent", "warn", f"no report since; the reason: holdfast why {job.job}"
    return "running", "good", ""


def series_of(job: JobState, *, now_ns: int) -> Json:
    """
    Columns of points in order of time: milliseconds, steps per second, loss, and goodput up to then.

    Goodput at a time is that of the steps that counted then: a restart from an earlier step lowers it. A job without
    a step for longer than usual has a last point at ``now_ns``.
    """
    series, first_ns = job.series, job.series.times_ns[0] if job.series.times_ns else 0
    times, rates, losses, useful_s = [*series.times_ns], series.rates(), [*series.losses], [*series.useful_s]
    if times and now_ns > times[-1] and job.is_behind(now_ns):
        times.append(now_ns)
        rates.append(0.0)
        losses.append(math.nan)
        useful_s.append(useful_s[-1])
    return {
        "t": [milliseconds(time_ns) for time_ns in times],
        "rate": [rounded(rate) for rate in rates],
        "loss": [rounded(loss) for loss in losses],
        "goodput": [
            rounded(seconds / ((time_ns - first_ns) / 1e9)) if time_ns > first_ns else None
            for time_ns, seconds in zip(times, useful_s, strict=True)
        ],
    }
