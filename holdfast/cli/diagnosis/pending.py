"""Jobs and pods that wait: the reason in words, and the node, image or job that they wait for."""

from collections.abc import Sequence

from holdfast.cli.diagnosis.evidence import DrainedNode, Evidence, PendingJob
from holdfast.cli.diagnosis.spans import shown_span
from holdfast.cli.diagnosis.suspects import Suspect

BY_NODES = ("ReqNodeNotAvail", "NodeDown", "PartitionNodeLimit", "PartitionDown", "Nodes required for job are DOWN")
"""Beginnings of Slurm's reasons for which nodes that take no job are the cause (squeue(1), JOB REASON CODES)."""
NEVER = (
    "DependencyNeverSatisfied", "JobHeldAdmin", "JobHeldUser", "BadConstraints", "PartitionConfig", "InvalidAccount",
    "InvalidQOS", "JobLaunchFailure", "launch failed requeued held", "launch_failed_requeued_held",
)  # fmt: skip
"""Slurm's reasons that time alone does not end."""
IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
CRASHES = ("CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError")


def causes(evidence: Evidence) -> list[Suspect]:
    return [cause for one in evidence.pending for cause in _of(one)]


def lines(evidence: Evidence) -> list[str]:
    found = []
    for one in evidence.pending:
        place = f"{one.place}: " if one.place else ""
        size = "" if one.requested is None else f"; requests {one.requested} nodes"
        size += "" if one.usable is None else f", {one.usable} can take jobs"
        found.append(f"{place}{one.words}{size}")
        found += [f"job {held.job} has {held.nodes} node{'s' if held.nodes > 1 else ''}{_end(held.ends_s)}"
                  for held in one.holders]  # fmt: skip
    drained = {node.node: node for one in evidence.pending for node in one.drained}
    drained |= {node.node: node for node in evidence.drained}
    return [*found, *(described(node) for node in drained.values())]


def described(node: DrainedNode) -> str:
    by = f" (set by {node.by})" if node.by else ""
    return f"node {node.node} is {node.state}: {node.reason or 'no reason given'}{by}"


def _of(one: PendingJob) -> list[Suspect]:
    if one.name in IMAGE:
        return [Suspect(kind="image", text=f"{one.place}: {one.words}")]
    if one.name in CRASHES:
        return [Suspect(kind="error", text=f"{one.place}: {one.words}")]
    short = one.usable is not None and one.requested is not None and one.usable < one.requested
    by_nodes = one.name.startswith(BY_NODES) or (one.name in ("Resources", "Priority") and short)
    if by_nodes and one.drained:
        return [Suspect(kind="drained", node=node.node, text=described(node)) for node in one.drained]
    if one.name.startswith(NEVER) or (short and by_nodes):
        return [Suspect(kind="scheduling", text=one.words)]
    if one.name in ("Resources", "Unschedulable"):
        place = f"{one.place}: " if one.place else ""
        return [Suspect(kind="capacity", text=f"{place}{one.words}{_held_by(one)}", at_fault=False)]
    return []


def _held_by(one: PendingJob) -> str:
    return (
        f" by job{'s' if len(one.holders) > 1 else ''} {', '.join(held.job for held in one.holders)}"
        if one.holders
        else ""
    )


def _end(seconds: float | None) -> str:
    return "" if seconds is None else f", until its time limit in {shown_span(seconds)}"


def next_lines(pending: Sequence[PendingJob]) -> list[str]:
    found = []
    for one in pending:
        if one.fix:
            found.append(one.fix)
        elif one.name.startswith(NEVER):
            found.append("it starts only after a change: see the reason above")
        elif one.starts_s is not None:
            found.append(f"Slurm expects to start it in {shown_span(max(0.0, one.starts_s))}")
        elif one.name in IMAGE:
            found.append("the kubelet retries the pull, at most 5 min apart")
        else:
            found.append("no expected start: it starts when the reason ends")
    return list(dict.fromkeys(found))
