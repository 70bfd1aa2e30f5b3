from collections.abc import Iterable, Mapping
from typing import Any

WORKLOADS = ("DaemonSet", "Deployment")


def workloads(objects: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [one for one in objects if one["kind"] in WORKLOADS]


def lacking(found: Mapping[str, Any]) -> int:
    """Return the number of missing pods of a Deployment or DaemonSet; 1 before its controller has observed it."""
    status = found.get("status", {})
    if status.get("observedGeneration", 0) < found["metadata"].get("generation", 1):
        return 1
    if found["kind"] == "DaemonSet":
        desired, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    else:
        desired, available = found["spec"].get("replicas", 1), status.get("availableReplicas", 0)
    return max(int(desired) - int(available), 0)
