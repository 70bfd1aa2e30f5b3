import calendar
import time
from collections.abc import Mapping
from typing import Any

from holdfast_common import JOB_INDEX_LABEL, NODE_HEALTH_LABEL
from holdfast_operator.decisions import SCHEDULABLE, STOPPED, NodeFacts, PodFacts, stops
from holdfast_operator.objects.pods import SHAPE_ANNOTATION


def index_of(pod: Mapping[str, Any]) -> int:
    return int(pod["metadata"]["labels"][JOB_INDEX_LABEL])


def owner_uid(pod: Mapping[str, Any]) -> str:
    """Return the UID of its controller; empty without one."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def node_facts(node: Mapping[str, Any]) -> NodeFacts:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return NodeFacts(
        health=(node["metadata"].get("labels") or {}).get(NODE_HEALTH_LABEL) or SCHEDULABLE,
        is_ready=any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions),
    )


def pod_facts(pod: Mapping[str, Any]) -> PodFacts:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    state = _state(pod, spec["containers"][0]["name"])
    ended, running, waiting = (state.get(name) or {} for name in ("terminated", "running", "waiting"))
    why, phase = _unscheduled(status), status.get("phase", "Pending")
    # A container beside the launcher's keeps a pod running; restartPolicy Never starts the launcher's no more.
    lingers = phase == "Running" and "finishedAt" in ended
    code, message = ended.get("exitCode"), ended.get("message") or status.get("message") or ""
    if code == 0 and stops(message):
        code = STOPPED  # a shell that ends with the code of another program, as of tee behind a pipe
    if lingers or phase == "Succeeded":
        phase = "Failed" if code else "Succeeded"
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        why = _reason(waiting)
    return PodFacts(
        index=index_of(pod),
        uid=metadata["uid"],
        phase=phase,
        lingers=lingers,
        shape=(metadata.get("annotations") or {}).get(SHAPE_ANNOTATION, ""),
        node=spec.get("nodeName") or "",
        is_deleted=bool(metadata.get("deletionTimestamp")),
        created_s=_seconds(metadata.get("creationTimestamp")),
        started_s=_seconds(running.get("startedAt") or ended.get("startedAt")),
        ended_s=_seconds(ended.get("finishedAt")),
        exit_code=code,
        reason=status.get("reason") or ended.get("reason") or "",
        message=message,
        waiting=why,
    )


def _state(pod: Mapping[str, Any], container: str) -> Mapping[str, Any]:
    """Return the state of the launcher's container, or of an init container that failed before it."""
    status = pod.get("status") or {}
    inits: list[Mapping[str, Any]] = [one.get("state") or {} for one in status.get("initContainerStatuses") or ()]
    found = [one.get("state") or {} for one in status.get("containerStatuses") or () if one["name"] == container]
    failed = (state for state in inits if (state.get("terminated") or {}).get("exitCode"))
    return next(failed, found[0] if found else {})


def _unscheduled(status: Mapping[str, Any]) -> str:
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return _reason(one)
    return ""


def _reason(found: Mapping[str, Any]) -> str:
    return ": ".join(str(found[key]) for key in ("reason", "message") if found.get(key))


def _seconds(text: str | None) -> float | None:
    if not text:
        return None
    return float(calendar.timegm(time.strptime(text.partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S")))
