"""Ends of a job: finished, failed, or past a deadline."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast_operator.decisions.facts import PodFacts
from holdfast_operator.jobs import COMPLETE, FAILED, RUNNING, Job, Status, read_metrics, with_condition

FINISH_S = 90.0
"""Time that other launchers have to end after the first one has ended with 0: ``stop`` twice, and their last report."""


def finished(status: Status, pods: Sequence[PodFacts], *, now_s: float) -> Status | None:
    """Return the status of a job whose ranks have all finished; None before."""
    if status.finished_s is None and not any(pod.phase == "Succeeded" for pod in pods):
        return None
    if status.finished_s is None:
        status = replace(status, finished_s=now_s)
    since_s = now_s - (status.finished_s or now_s)
    running = sum(pod.phase == "Running" for pod in pods)
    if running and since_s < FINISH_S:
        return status
    late = f"; {running} pod{'s' if running > 1 else ''} did not end within {FINISH_S:g} s" if running else ""
    last = next((found for pod in pods if (found := read_metrics(pod.message)) is not None), None)
    if last is not None:
        status = replace(status, progress=last.manifest())
    return _ended(status, COMPLETE, "Finished", f"all ranks have finished{late}", now_s=now_s)


def past_deadline(job: Job, status: Status, *, now_s: float) -> Status | None:
    """Return the status of a job that has passed a deadline; None before."""
    since_s = now_s - (now_s if status.started_s is None else status.started_s)
    active_s, start_s = job.deadlines.active_s, job.deadlines.start_s
    if active_s is not None and since_s >= active_s:
        return fails(status, "ActiveDeadline", f"the job did not end within {active_s:g} s", now_s=now_s)
    if start_s is not None and status.whole_s is None and since_s >= start_s:
        why = f"{status.nodes} of {job.nodes.size} nodes run after {start_s:g} s"
        return fails(status, "StartDeadline", why, now_s=now_s)
    fault_s, running = job.deadlines.fault_s, status.condition(RUNNING)
    if fault_s is None or status.whole_s is None or running is None or running.is_true:
        return None
    if status.nodes < job.nodes.least and now_s - running.since_s >= fault_s:
        why = f"{status.nodes} of at least {job.nodes.least} nodes run after a fault of {fault_s:g} s"
        return fails(status, "FaultDeadline", why, now_s=now_s)
    return None


def fails(status: Status, reason: str, message: str, *, now_s: float) -> Status:
    return _ended(status, FAILED, reason, message, now_s=now_s)


def _ended(status: Status, kind: str, reason: str, message: str, *, now_s: float) -> Status:
    status = with_condition(status, RUNNING, is_true=False, reason=reason, now_s=now_s)
    status = with_condition(status, kind, is_true=True, reason=reason, message=message, now_s=now_s)
    return replace(status, completed_s=now_s)
