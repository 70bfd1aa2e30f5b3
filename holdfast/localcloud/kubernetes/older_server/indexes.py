"""
Completion indexes of a Job's new pods, as the Job controller gives them since 1.22.

Source: kubernetes/kubernetes v1.34.0, pkg/controller/job/indexed_job_utils.go and job_controller.go (manageJob): the
lowest free index; names, host name, annotation, label and variable of a pod.
"""

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.localcloud.kubernetes.older_server.manifests import COMPLETIONS_LABEL
from holdfast_common import KubernetesError

INDEX = "batch.kubernetes.io/job-completion-index"
VARIABLE = "JOB_COMPLETION_INDEX"
LONGEST_PREFIX = 58
"""Of a pod's name, before its five random characters."""
RESERVED_S = 30.0
"""Time from a review to the pod in a list; the API server gives up a request after as long."""

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Reservation:
    index: int
    pod: str
    until: float


class Indexes:
    """
    Thread-safe.

    Args:
        pods: Returns the pods of a namespace that have the label of indexed ones.
    """

    def __init__(self, *, pods: Callable[[str], list[Object]], clock: Callable[[], float] = time.monotonic) -> None:
        self._pods, self._clock = pods, clock
        self._lock = threading.Lock()
        self._reserved: dict[str, list[_Reservation]] = {}

    def admit(self, review: Mapping[str, Any]) -> Object:
        """Answer an AdmissionReview of a new pod; the Job controller repeats what is refused."""
        request = review.get("request") or {}
        response: Object = {"uid": request.get("uid", ""), "allowed": True}
        pod = request.get("object") or {}
        owner = _owner(pod)
        if owner is not None:
            try:
                patch = self._patch(pod, owner, request)
            except (KubernetesError, ValueError) as error:
                response |= {"allowed": False, "status": {"code": 503, "message": f"no completion index: {error}"}}
            else:
                encoded = base64.b64encode(json.dumps(patch).encode()).decode()
                response |= {"patchType": "JSONPatch", "patch": encoded}
        return {"apiVersion": review.get("apiVersion"), "kind": "AdmissionReview", "response": response}

    def _patch(self, pod: Object, owner: Mapping[str, Any], request: Mapping[str, Any]) -> list[Object]:
        completions = int(pod["metadata"]["labels"][COMPLETIONS_LABEL])
        job, uid = str(owner["name"]), str(owner["uid"])
        with self._lock:
            listed = [
                one for one in self._pods(str(request.get("namespace", ""))) if (_owner(one) or {}).get("uid") == uid
            ]
            names = {one["metadata"]["name"] for one in listed}
            kept = [one for one in self._reserved.pop(uid, []) if one.pod not in names and one.until > self._clock()]
            taken = {one.index for one in kept} | set(_indexes(listed))
            index = next((number for number in range(completions) if number not in taken), None)
            if index is None:
                raise ValueError(f"each of the {completions} of Job {job} has a pod")
            name = f"{job}-{index}-"[:LONGEST_PREFIX] + secrets.token_hex(3)[:5]
            if not request.get("dryRun"):
                kept.append(_Reservation(index=index, pod=name, until=self._clock() + RESERVED_S))
            if kept:
                self._reserved[uid] = kept
        return _patch_of(pod, job=job, index=index, name=name)


def _owner(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller") and one.get("kind") == "Job"), None)


def _indexes(pods: Iterable[Object]) -> Iterable[int]:
    """Yield the indexes that succeeded, or that a pod has which is neither failed nor deleted."""
    for pod in pods:
        phase = (pod.get("status") or {}).get("phase")
        index = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
        is_active = phase != "Failed" and "deletionTimestamp" not in pod["metadata"]
        if index.isdigit() and (phase == "Succeeded" or is_active):
            yield int(index)


def _patch_of(pod: Object, *, job: str, index: int, name: str) -> list[Object]:
    metadata, spec = pod["metadata"], pod["spec"]
    steps = {
        "/metadata/name": name,
        "/metadata/annotations": {**(metadata.get("annotations") or {}), INDEX: str(index)},
        "/metadata/labels": {**metadata["labels"], INDEX: str(index)},
        "/spec/hostname": f"{job}-{index}",
    }
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            steps[f"/spec/{kind}"] = [_container(one, index) for one in spec[kind]]
    return [{"op": "add", "path": path, "value": value} for path, value in steps.items()]


def _container(container: Object, index: int) -> Object:
    env = container.get("env") or []
    if any(one.get("name") == VARIABLE for one in env):
        return container
    return {**container, "env": [*env, {"name": VARIABLE, "value": str(index)}]}
