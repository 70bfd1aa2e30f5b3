"""Pods that are deleted although they have not ended."""

from collections.abc import Mapping, Sequence

from holdfast_operator.decisions.actions import Action, DeletePod
from holdfast_operator.decisions.facts import NodeFacts, PodFacts
from holdfast_operator.jobs import Job

WARM_S = 10.0
"""Age of a container from which its processes count as ready for ranks."""
PULL_S = 120.0
"""Time after which a pod whose node alone cannot pull its image is created elsewhere."""
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})


def gone(pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts]) -> tuple[Action, ...]:
    """Return the removal of pods whose node does not exist any more: no kubelet confirms their end."""
    return tuple(
        DeletePod(index=pod.index, uid=pod.uid, why=f"node {pod.node} does not exist", is_forced=True)
        for pod in pods
        if pod.node and pod.node not in nodes
    )


def leaving(job: Job, pods: Sequence[PodFacts], nodes: Mapping[str, NodeFacts], *, now_s: float) -> DeletePod | None:
    """Return the next pod that hands over its ranks; None if there is none, or the others are not ready for them."""
    if any(pod.is_deleted for pod in pods):
        return None
    ready = {pod.uid for pod in pods if _is_ready(pod, nodes, now_s=now_s)}
    for pod in sorted(pods, key=lambda one: -one.index):
        node = nodes.get(pod.node)
        if node is not None and not node.is_healthy and (not pod.runs or len(ready - {pod.uid}) >= job.nodes.least):
            return DeletePod(index=pod.index, uid=pod.uid, why=f"node {pod.node} is {node.health}")
        if _cannot_pull(pod, pods, now_s=now_s):
            why = f"node {pod.node} cannot pull the image: {pod.waiting}"
            return DeletePod(index=pod.index, uid=pod.uid, why=why, excluded=pod.node)
    if len(pods) <= job.nodes.pods:
        return None
    chosen = min(pods, key=lambda one: (one.runs, -one.index))
    if chosen.runs and len(ready - {chosen.uid}) < job.nodes.size:
        return None
    return DeletePod(index=chosen.index, uid=chosen.uid, why=f"the job has {job.nodes.size} nodes now")


def _is_ready(pod: PodFacts, nodes: Mapping[str, NodeFacts], *, now_s: float) -> bool:
    node = nodes.get(pod.node)
    if not pod.runs or node is None or not node.is_ready or not node.is_healthy:
        return False
    return pod.started_s is not None and now_s - pod.started_s >= WARM_S


def _cannot_pull(pod: PodFacts, pods: Sequence[PodFacts], *, now_s: float) -> bool:
    """Return True if other nodes have the image: where none has it, another node does not help."""
    waits = pod.waiting.partition(":")[0] in _PULL and any(one.runs for one in pods)
    return waits and pod.created_s is not None and now_s - pod.created_s >= PULL_S
