"""
Charges for failed pods, each once, and the ladder of restarts.

A launcher that failed alone: its pod is created again, the others train on. All launchers ended by their own decision:
all pods are created again, and the job resumes from its checkpoint. Losses of nodes and hand-overs are not charged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast_operator.decisions.actions import Action, DeletePod
from holdfast_operator.decisions.ending import fails
from holdfast_operator.decisions.evidence import failure_of, repeats, stop_of
from holdfast_operator.decisions.facts import NodeFacts, PodFacts
from holdfast_operator.jobs import Job, Period, Status, Stop

ALONE_S = 75.0
"""Time after which a launcher that ended with 1 was alone: the others would have ended after ``stop``, twice 30 s."""
MOST_STOPS = 5


@dataclass(frozen=True, kw_only=True)
class Charges:
    status: Status
    actions: tuple[Action, ...] = ()
    """Actions that come before all others."""
    held: frozenset[str] = frozenset()
    """UIDs of failed pods that are kept until it is known whether the others end, too."""


def charged(
    job: Job, status: Status, pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts], *, now_s: float
) -> Charges:
    """Charge new failures."""
    status = replace(status, counted=tuple(uid for uid in status.counted if any(pod.uid == uid for pod in pods)))
    failed = [pod for pod in pods if pod.phase == "Failed" and not pod.is_deleted]
    found = {pod.uid: failure_of(pod, nodes) for pod in failed}
    stopped = [pod for pod in failed if found[pod.uid].kind == "stopped"]
    if stopped and not any(pod.phase == "Running" for pod in pods):
        return _stopped(job, status, failed, now_s=now_s)
    held = frozenset(pod.uid for pod in stopped if now_s - (pod.ended_s or now_s) < ALONE_S)
    what = ""
    for pod in failed:
        failure = found[pod.uid]
        if failure.kind == "flags":
            return Charges(status=fails(status, "InvalidOptions", failure.what, now_s=now_s))
        charged_now = failure.kind in ("launcher", "stopped") and pod.uid not in held
        if charged_now and pod.uid not in status.counted:
            status = replace(status, counted=(*status.counted, pod.uid))
            what, where = failure.what, f" of pod {pod.index}"
            status = launcher_restart(job, status, node=pod.node, what=what, where=where, now_s=now_s)
    return Charges(status=escalated(job, status, pods, what, now_s=now_s), held=held)


def launcher_restart(job: Job, status: Status, *, node: str, what: str, where: str = "", now_s: float) -> Status:
    """Charge a restart by a fault on a node, if it is known."""
    restarts, period = status.launcher_restarts + 1, _period(job, status, now_s=now_s)
    period = replace(period, launchers=period.launchers + 1)
    status = _blamed(job, replace(status, launcher_restarts=restarts, period=period, failed_s=now_s), node, what)
    if restarts > job.recovery.launcher_restarts:
        why = (
            f"launcher restarts: got {restarts}; allowed: {job.recovery.launcher_restarts}; the last one{where}: {what}"
        )
        return fails(status, "LauncherRestarts", why, now_s=now_s)
    return status


def restart_of_all(status: Status, pods: Sequence[PodFacts], what: str) -> Status:
    """Note the pods that have to go together, and why."""
    stops = (*status.stops, Stop(what=what))[-MOST_STOPS:]
    return replace(status, restarting=tuple(pod.uid for pod in pods), stops=stops)


def escalated(job: Job, status: Status, pods: Sequence[PodFacts], what: str, *, now_s: float) -> Status:
    """Restart all pods after more restarts of launchers than a period may have; ``what``: the last reason."""
    most, count = job.recovery.restart_all_after, status.period.launchers
    if most is None or count <= most or status.has_ended:
        return status
    what = f"{count} restarts of launchers in a period; allowed: {most}; the last reason: {what}"
    status = _job_restart(job, status, what, now_s=now_s)
    status = replace(status, period=replace(status.period, launchers=0))
    return status if status.has_ended else restart_of_all(status, pods, what)


def _job_restart(job: Job, status: Status, what: str, *, now_s: float) -> Status:
    period = _period(job, status, now_s=now_s)
    period = replace(period, jobs=period.jobs + 1)
    status = replace(status, job_restarts=status.job_restarts + 1, period=period, failed_s=now_s)
    if period.jobs > job.recovery.job_restarts:
        why = f"restarts of all pods: got {period.jobs}; allowed: {job.recovery.job_restarts}; the last reason: {what}"
        return fails(status, "JobRestarts", why.strip(), now_s=now_s)
    return status


def _period(job: Job, status: Status, *, now_s: float) -> Period:
    """Return the restarts of the current period: periods follow each other from the start of the job."""
    if job.recovery.period_s is None or status.started_s is None:
        return status.period
    index = int((now_s - status.started_s) // job.recovery.period_s)
    return status.period if index == status.period.index else Period(index=index)


def _stopped(job: Job, status: Status, failed: Sequence[PodFacts], *, now_s: float) -> Charges:
    new = [pod for pod in failed if pod.uid not in status.counted]
    actions = tuple(DeletePod(index=pod.index, uid=pod.uid, why="all launchers have ended") for pod in failed)
    if not new:
        return Charges(status=status, actions=actions)
    stop = stop_of(failed)
    counted = tuple(pod.uid for pod in failed)
    status = replace(status, counted=counted, stops=(*status.stops, stop)[-MOST_STOPS:])
    where = f"in step {stop.step}" if stop.step is not None else ""
    if repeats(stop, status.stops[:-1]):
        why = f"the program raised the same exception {where} on other nodes as well: {stop.what}"
        return Charges(status=fails(status, "ProgramFailed", why, now_s=now_s))
    status = _job_restart(job, status, f"{stop.what} {where}", now_s=now_s)
    if status.has_ended:
        return Charges(status=status)
    if stop.step is not None and stop.node:
        # Another node shows whether the program or the machine is the cause.
        status = without_node(status, stop.node, f"raised {stop.what} {where}")
    return Charges(status=status, actions=actions)


def _blamed(job: Job, status: Status, node: str, what: str) -> Status:
    if not node:
        return status
    counts = dict(status.node_failures)
    counts[node] = counts.get(node, 0) + 1
    status = replace(status, node_failures=tuple(counts.items()))
    if job.recovery.node_failures and counts[node] >= job.recovery.node_failures:
        status = without_node(status, node, f"{counts[node]} failed launchers, the last one with {what}")
    return status


def without_node(status: Status, node: str, reason: str) -> Status:
    others = tuple(one for one in status.excluded if one[0] != node)
    return replace(status, excluded=(*others, (node, reason)))
