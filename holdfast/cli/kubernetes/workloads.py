"""
Jobs from objects of Kubernetes: Jobs, StatefulSets, operators' jobs and pods without a controller. Pure.

Objects with the same ``app.kubernetes.io/instance`` are one job, such as one object per rank.
"""

import calendar
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.cli.kubernetes.manifests import JOB_LABEL, JobName, Object, job_name_of
from holdfast_common import JOB_API, JOB_PLURAL

OPERATORS = {
    JOB_API: JOB_PLURAL,
    "sagemaker.amazonaws.com/v1": "hyperpodpytorchjobs",
    "kubeflow.org/v1": "pytorchjobs",
    "jobset.x-k8s.io/v1alpha2": "jobsets",
}
"""Group and version of the jobs of operators -> their plural."""
COMPLETE, FAILED, RUNNING, PENDING, SUSPENDED = "Complete", "Failed", "Running", "Pending", "Suspended"
ENDED = frozenset({COMPLETE, FAILED})
GOING_ON = frozenset({RUNNING, PENDING, SUSPENDED})
_STATES = {"Succeeded": COMPLETE, "Completed": COMPLETE, "Complete": COMPLETE, "Failed": FAILED, "Suspended": SUSPENDED}
_PULL = re.compile(r"\b(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName)\b")
_IMAGE = re.compile(r"image \\?\"([\w./:@-]+)\\?\"")
_SYSTEM = ("kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True, kw_only=True)
class PodRecord:
    name: str
    namespace: str
    phase: str
    node: str
    """Name of its Node; empty while it has none."""
    containers: tuple[str, ...]
    why: str = ""
    """Reason for not running, or for the failure."""
    exit_code: int = 0
    uid: str = ""


@dataclass(frozen=True, kw_only=True)
class Workload:
    job: JobName
    kinds: str
    """Such as "Job", or "5 Jobs"."""
    state: str
    """Complete, Failed, Running, Pending or Suspended."""
    why: str
    created_s: int
    ended_s: int | None
    pods: tuple[PodRecord, ...]

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({pod.node for pod in self.pods if pod.node}))

    @property
    def exit_code(self) -> int:
        return next((pod.exit_code for pod in self.pods if pod.exit_code), 0)


def workloads(objects: Iterable[Object], pods: Iterable[Object]) -> list[Workload]:
    """
    Return all jobs: failed, then active, then the others; each newest first.

    Args:
        objects: Jobs, StatefulSets and operators' jobs, each with its ``kind``.
        pods: All pods of their namespaces.
    """
    grouped: dict[JobName, list[Object]] = defaultdict(list)
    for one in objects:
        if not _is_controlled(one):
            grouped[job_name_of(one)].append(one)
    owned: dict[JobName, list[Object]] = defaultdict(list)
    of_uid = {one["metadata"]["uid"]: name for name, group in grouped.items() for one in group}
    for pod in pods:
        owners = [of_uid[uid] for uid in _owners(pod) if uid in of_uid]
        labelled = job_name_of(pod) if JOB_LABEL in pod["metadata"].get("labels", {}) else None
        if owners:
            owned[owners[0]].append(pod)
        elif labelled in grouped:
            owned[labelled].append(pod)
        elif not _is_controlled(pod) and pod["metadata"]["namespace"] not in _SYSTEM:
            name = job_name_of(pod)
            grouped[name].append({**pod, "kind": "Pod"})
            owned[name].append(pod)
    found = [_workload(name, group, owned[name]) for name, group in grouped.items()]
    return sorted(found, key=lambda one: (_rank(one), -(one.ended_s or one.created_s), str(one.job)))


def _workload(name: JobName, objects: Sequence[Object], pods: Sequence[Object]) -> Workload:
    records = tuple(sorted((pod_record(pod) for pod in pods), key=lambda one: one.name))
    states = [_state(one, records) for one in objects]
    state = _together([each for each, _ in states])
    why = next((reason for each, reason in states if each == state and reason), "")
    if not why and state in (PENDING, RUNNING):
        why = next((pod.why for pod in records if pod.phase == "Pending" and pod.why), "")
    ends = [end for one in objects if (end := _ended(one)) is not None]
    kinds = sorted({one["kind"] for one in objects})
    return Workload(
        job=name,
        kinds=", ".join(kinds) if len(objects) == 1 else f"{len(objects)} {', '.join(f'{kind}s' for kind in kinds)}",
        state=state,
        why=why,
        created_s=min(seconds(one["metadata"]["creationTimestamp"]) for one in objects),
        ended_s=max(ends) if state in ENDED and ends else None,
        pods=records,
    )


def _together(states: Sequence[str]) -> str:
    for state in (FAILED, RUNNING, PENDING, SUSPENDED):
        if state in states:
            return state
    return COMPLETE


def _state(thing: Object, pods: Sequence[PodRecord]) -> tuple[str, str]:
    status, spec = thing.get("status") or {}, thing.get("spec") or {}
    if thing["kind"] == "Pod":
        phase = status.get("phase", PENDING)
        return _STATES.get(phase, phase if phase in (RUNNING, PENDING) else PENDING), pod_record(thing).why
    if thing["kind"] == "StatefulSet":
        ready = status.get("readyReplicas", 0)
        replicas = spec.get("replicas", 1)
        return (RUNNING, "") if ready == replicas and replicas else (PENDING, f"{ready} of {replicas} pods are ready")
    for condition in reversed(status.get("conditions") or ()):
        if condition.get("status") == "True" and condition.get("type") in _STATES:
            state = _STATES[condition["type"]]
            message = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
            return state, message if state == FAILED else ""
    if spec.get("suspend") is True:
        return SUSPENDED, ""
    mine = [pod for pod in pods if pod.name.startswith(f"{thing['metadata']['name']}-")] or pods
    return (RUNNING if any(pod.phase == RUNNING for pod in mine) else PENDING), _waits_for(status, has_pods=bool(pods))


def _waits_for(status: Mapping[str, Any], *, has_pods: bool) -> str:
    """Return the mistakes of a HoldfastJob that was created without its webhook, or why it has no pods."""
    conditions = {(one.get("type"), one.get("status")): one for one in status.get("conditions") or ()}
    found = conditions.get(("Invalid", "True")) or (None if has_pods else conditions.get(("Running", "False")))
    return str(found.get("message", "")) if found else ""


def pod_record(pod: Object) -> PodRecord:
    status, metadata = pod.get("status") or {}, pod["metadata"]
    return PodRecord(
        name=metadata["name"],
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        phase="Terminating" if metadata.get("deletionTimestamp") else status.get("phase", PENDING),
        node=pod["spec"].get("nodeName", ""),
        containers=tuple(
            one["name"] for one in [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
        ),
        why=_why(status),
        exit_code=next((code for one in _ends(status) if (code := one.get("exitCode", 0))), 0),
    )


def image_hint(why: str) -> str:
    """Return the fix for a missing image on the local cluster; empty for other reasons."""
    if not _PULL.search(why):
        return ""
    found = _IMAGE.search(why)
    image = found[1] if found else "IMAGE"
    return (
        "the local cluster pulls only what is in its store: holdfast images list; "
        f"add it with: holdfast images add docker://{image} {image} (or an archive in the place of docker://...)"
    )


def _why(status: Mapping[str, Any]) -> str:
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return _reason(waiting)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _reason(condition)
    for end in _ends(status):
        if end.get("exitCode"):
            return f"exit code {end['exitCode']}" + (f" ({end['reason']})" if end.get("reason") != "Error" else "")
    return _reason(status) if status.get("phase") == FAILED else ""


def _ends(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [(one.get("state") or {}).get("terminated") for one in _containers(status)]
    return [one for one in found if one]


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _reason(condition: Mapping[str, Any]) -> str:
    return ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))


def _ended(thing: Object) -> int | None:
    status = thing.get("status") or {}
    if stamp := status.get("completionTime"):
        return seconds(stamp)
    ends = [one["lastTransitionTime"] for one in status.get("conditions") or () if one.get("type") in _STATES]
    ends += [one["finishedAt"] for one in _ends(status) if one.get("finishedAt")]
    return max((seconds(one) for one in ends), default=None)


def _rank(workload: Workload) -> int:
    return 0 if workload.state == FAILED else 1 if not workload.has_ended else 2


def _is_controlled(thing: Object) -> bool:
    return any(one.get("controller") for one in thing["metadata"].get("ownerReferences") or ())


def _owners(thing: Object) -> list[str]:
    return [one["uid"] for one in thing["metadata"].get("ownerReferences") or ()]


def seconds(stamp: str) -> int:
    """Return Unix time of an RFC 3339 time."""
    return calendar.timegm(time.strptime(stamp.partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S"))


def readiness(node: Object) -> str:
    """Return Ready or NotReady, and SchedulingDisabled, as kubectl shows it."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    cordoned = ",SchedulingDisabled" if node["spec"].get("unschedulable") else ""
    return ("Ready" if ready else "NotReady") + cordoned
