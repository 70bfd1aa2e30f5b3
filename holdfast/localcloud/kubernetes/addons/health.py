"""Whether what an add-on has made is all there, from what Kubernetes says of it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

WORKLOADS = ("DaemonSet", "Deployment")


def workloads(objects: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of an add-on's objects that have pods."""
    return [one for one in objects if one["kind"] in WORKLOADS]


def lacking(found: Mapping[str, Any]) -> int:
    """How many pods a Deployment or DaemonSet is short of; one that nobody has looked at yet is short of one."""
    status = found.get("status", {})
    if status.get("observedGeneration", 0) < found["metadata"].get("generation", 1):
        return 1
    if found["kind"] == "DaemonSet":
        wanted, there = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    else:
        wanted, there = found["spec"].get("replicas", 1), status.get("availableReplicas", 0)
    return max(int(wanted) - int(there), 0)
