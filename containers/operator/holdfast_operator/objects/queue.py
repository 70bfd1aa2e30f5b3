"""
Kueue's labels and annotations of pods: one group for the least size and its spares, and each further pod by itself.

Source: Kueue's pages "Run Plain Pods" and "Labels and Annotations", and pkg/controller/jobs/pod, read 2026-11-30.
"""

from collections.abc import Container, Mapping
from typing import Any

from holdfast_operator.jobs import PRIORITY_LABEL, QUEUE_LABEL, Job

QUEUE_FINALIZER = "kueue.x-k8s.io/managed"


def queue_labels(job: Job, index: int) -> dict[str, str]:
    if not job.queue:
        return {}
    group = {"kueue.x-k8s.io/pod-group-name": job.name} if index < job.nodes.gang else {}
    return {QUEUE_LABEL: job.queue, **({PRIORITY_LABEL: job.priority} if job.priority else {}), **group}


def queue_annotations(job: Job, index: int) -> dict[str, str]:
    if not job.queue or index >= job.nodes.gang:
        return {}
    # Without a name of their role, pods that avoid another node than the first ones did are another role.
    return {"kueue.x-k8s.io/pod-group-total-count": str(job.nodes.gang), "kueue.x-k8s.io/role-hash": "launcher"}


def is_held(pod: Mapping[str, Any], nodes: Container[str]) -> bool:
    """
    Return True for a deleted pod that has ended, and that Kueue keeps.

    Kueue keeps a pod of a group until it sees another one in its place, which cannot have its name before.
    """
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    has_ended = phase in ("Succeeded", "Failed") or pod["spec"].get("nodeName") not in nodes
    return (
        bool(metadata.get("deletionTimestamp")) and QUEUE_FINALIZER in (metadata.get("finalizers") or ()) and has_ended
    )
