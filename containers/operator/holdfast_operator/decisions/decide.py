"""
Actions for one job.

One voluntary deletion at a time, and only while the remaining pods are enough: a launcher that gets SIGTERM without a
warm process elsewhere cannot hand its ranks over. A node that is not Ready is no reason to act: its launcher may still
train, and its pods are deleted by Kubernetes' own eviction. A node that does not exist any more is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast_operator.decisions.actions import Action, CreatePod, Decision, DeleteJob, DeletePod
from holdfast_operator.decisions.charging import charged, without_node
from holdfast_operator.decisions.ending import finished, past_deadline
from holdfast_operator.decisions.facts import NodeFacts, PodFacts
from holdfast_operator.decisions.leaving import gone, leaving
from holdfast_operator.decisions.restarting import restarted
from holdfast_operator.jobs import INVALID, RUNNING, SUSPENDED, Job, Status, with_condition
from holdfast_operator.logs import Trip

SLOWEST_S = 60.0
ALLOWED_AGAIN_S = 120.0
"""Time that a pod without a node waits before the nodes that the job excludes are allowed again."""


def decide(
    job: Job,
    *,
    pods: Sequence[PodFacts],
    nodes: Mapping[str, NodeFacts],
    now_s: float,
    trip: Trip | None = None,
) -> Decision:
    """
    Decide about a job.

    Args:
        pods: Of this job's UID.
        nodes: All nodes of the cluster.
        trip: Of a log rule. Default: none.
    """
    status = replace(job.status, nodes=sum(pod.runs for pod in pods))
    if job.is_deleted:
        return Decision(status=status)
    if status.has_ended:
        return _after_end(job, status, pods, now_s=now_s)
    status = _cleared(status, INVALID, "Valid", now_s=now_s)
    if job.is_suspended:
        return _suspended(status, pods, nodes, now_s=now_s)
    status = _cleared(status, SUSPENDED, "Resumed", now_s=now_s)
    if changed := sum(pod.shape != job.shape for pod in pods):
        return Decision(status=_changed(status, changed, now_s=now_s))
    status = _dated(job, status, now_s=now_s)
    status = restarted(job, status, pods, trip, now_s=now_s)
    if status.has_ended:
        return Decision(status=status)
    end = None if status.restarting else finished(status, pods, now_s=now_s)
    end = end or past_deadline(job, status, now_s=now_s)
    if end is not None:
        return Decision(status=end)
    if status.restarting:
        return _restarting(job, status, pods, nodes, now_s=now_s)
    charges = charged(job, status, pods, nodes, now_s=now_s)
    status, actions = charges.status, charges.actions
    if status.has_ended:
        return Decision(status=status)
    if status.restarting:
        return _restarting(job, status, pods, nodes, now_s=now_s)
    if not actions and status.excluded and (stuck := _stuck(pods, now_s=now_s)):
        status = replace(status, excluded=())
        actions = _deleted(stuck, why="no other node is free, so excluded nodes are allowed again")
    if not actions:
        actions = _kept(job, status, pods, nodes, held=charges.held, now_s=now_s)
    for action in actions:
        if isinstance(action, DeletePod) and action.excluded:
            status = without_node(status, action.excluded, action.why)
    return Decision(status=_described(job, status, pods, now_s=now_s), actions=actions)


def _restarting(
    job: Job, status: Status, pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts], *, now_s: float
) -> Decision:
    actions = _removed(pods, nodes, why=status.stops[-1].what)
    return Decision(status=_described(job, status, pods, now_s=now_s), actions=actions)


def _after_end(job: Job, status: Status, pods: Sequence[PodFacts], *, now_s: float) -> Decision:
    """Delete pods that still run, and the job after its time; ended pods are kept for their logs, outside of queues."""
    if job.ttl_s is not None and status.completed_s is not None and now_s >= status.completed_s + job.ttl_s:
        return Decision(status=status, actions=(DeleteJob(why=f"it ended {job.ttl_s:g} s ago"),))
    left = [pod for pod in pods if job.queue or pod.lingers or pod.phase in ("Pending", "Running")]
    return Decision(status=status, actions=_deleted(left, why="the job has ended"))


def _suspended(status: Status, pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts], *, now_s: float) -> Decision:
    status = with_condition(status, SUSPENDED, is_true=True, reason="Suspended", now_s=now_s)
    status = with_condition(status, RUNNING, is_true=False, reason="Suspended", now_s=now_s)
    status = replace(status, started_s=None, whole_s=None)
    return Decision(status=status, actions=_removed(pods, nodes, why="it is suspended"))


def _cleared(status: Status, kind: str, reason: str, *, now_s: float) -> Status:
    if not status.is_true(kind):
        return status
    return with_condition(status, kind, is_true=False, reason=reason, now_s=now_s)


def _changed(status: Status, pods: int, *, now_s: float) -> Status:
    why = (
        f"the spec changed while {pods} pods of the previous one exist; allowed: other values of nodes.size, suspend, "
        "recovery, deadlines, logRules and ttlSecondsAfterFinished; undo the change, or set suspend until the pods are "
        "gone"
    )
    return with_condition(status, INVALID, is_true=True, reason="Changed", message=why, now_s=now_s)


def _deleted(pods: Sequence[PodFacts], *, why: str) -> tuple[Action, ...]:
    return tuple(DeletePod(index=pod.index, uid=pod.uid, why=why) for pod in pods if not pod.is_deleted)


def _removed(pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts], *, why: str) -> tuple[Action, ...]:
    """Return the removal of all pods."""
    return (*gone(pods, nodes), *_deleted([pod for pod in pods if pod.node in {"", *nodes}], why=why))


def _dated(job: Job, status: Status, *, now_s: float) -> Status:
    if status.started_s is None:
        status = replace(status, started_s=now_s)
    if status.whole_s is None and status.nodes >= job.nodes.size:
        status = replace(status, whole_s=now_s)
    return status


def _kept(
    job: Job,
    status: Status,
    pods: Sequence[PodFacts],
    nodes: Mapping[str, NodeFacts],
    *,
    held: frozenset[str],
    now_s: float,
) -> tuple[Action, ...]:
    """Return what keeps the job at its size."""
    if lost := gone(pods, nodes):
        return lost
    if over := [pod for pod in pods if pod.phase == "Failed" and pod.uid not in held and not pod.is_deleted]:
        return _deleted(over, why="its launcher has ended")
    if (left := leaving(job, pods, nodes, now_s=now_s)) is not None:
        return (left,)
    if now_s < _retried_s(status):
        return ()
    there = {pod.index for pod in pods}
    missing = [index for index in range(job.nodes.launchers) if index not in there]
    excluded = tuple(node for node, _ in status.excluded)
    lacking = max(0, job.nodes.pods - len(there))
    return tuple(CreatePod(index=index, excluded=excluded) for index in missing[:lacking])


def _stuck(pods: Sequence[PodFacts], *, now_s: float) -> list[PodFacts]:
    return [
        pod
        for pod in pods
        if not pod.node and pod.waiting and pod.created_s is not None and now_s - pod.created_s >= ALLOWED_AGAIN_S
    ]


def _retried_s(status: Status) -> float:
    """Return the time from which pods are created after charged failures: doubling from 1 s to a minute."""
    if status.failed_s is None:
        return 0.0
    times = status.launcher_restarts + status.job_restarts - 1
    return status.failed_s + float(min(SLOWEST_S, 2 ** min(max(0, times), 10)))


def _described(job: Job, status: Status, pods: Sequence[PodFacts], *, now_s: float) -> Status:
    message = f"{status.nodes} of {job.nodes.pods} pods run; {job.nodes.trained(status.nodes)} nodes train"
    waiting = next((pod.waiting for pod in pods if pod.waiting), "")
    if waiting and status.nodes < job.nodes.pods:
        message += f"; {waiting}"
    message += "".join(f"; log rule {name} is off: {reason}" for name, reason in status.rules_off)
    is_enough = status.nodes >= job.nodes.least
    reason = "Running" if is_enough else "PodsPending"
    return with_condition(status, RUNNING, is_true=is_enough, reason=reason, message=message, now_s=now_s)
