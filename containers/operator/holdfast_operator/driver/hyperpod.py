"""
HyperPodPyTorchJobs: each has a HoldfastJob below it, and shows its status in AWS's form.

Nothing is remembered: all of it follows from the two objects, so that a pass that fails is repeated as a whole.
"""

import time
from collections.abc import Callable
from typing import Any

from holdfast_common import ClusterAccess, KubernetesClient, KubernetesError
from holdfast_operator.driver.cache import Cache
from holdfast_operator.driver.cluster import hyperpod_jobs_path, jobs_path, pods_path
from holdfast_operator.hyperpod import (
    DEFINITION,
    child_name,
    grown_size,
    hyperpod_mistakes,
    hyperpod_status,
    to_holdfast_job,
)
from holdfast_operator.jobs import Status, read_status
from holdfast_operator.objects import owner_uid

OWN_LABEL = ("app.kubernetes.io/name", "holdfast-operator")
_MIRRORED = ("suspend", "recovery", "deadlines", "logRules")
"""What may change while pods run."""
_GONE, _CONFLICT = 404, 409
Object = dict[str, Any]


class ForeignDefinitionError(Exception):
    """Another operator owns the kind."""


def check_definition(client: KubernetesClient) -> None:
    """Raises: ForeignDefinitionError: the kind is another operator's, as AWS's. KubernetesError: no answer."""
    found = client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION}")
    key, value = OWN_LABEL
    if (found["metadata"].get("labels") or {}).get(key) != value:
        raise ForeignDefinitionError(
            f"got the definition {DEFINITION} of another operator; allowed: that of this chart. Remove the add-on "
            "amazon-sagemaker-hyperpod-training-operator, or set hyperPodPyTorchJobs.enabled: false"
        )


class HyperPodReconciler:
    """Carries HyperPodPyTorchJobs over; the arguments are those of ``Reconciler``."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        cache: Cache,
        may_write: Callable[[], bool],
        report: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._cache = cache
        self._may_write = may_write
        self._report = report
        self._clock = clock

    def reconcile(self, manifest: Object) -> None:
        """Bring a job of the cache one step further. Raises: KubernetesError: the API server does not answer."""
        metadata = manifest["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        mistakes = hyperpod_mistakes(manifest)
        child = None if mistakes else self._cache.job((metadata["namespace"], child_name(manifest)))
        if child is not None and owner_uid(child) != metadata["uid"]:
            mistakes, child = [_name_taken(manifest)], None
        if not mistakes and child is None:
            if (manifest.get("status") or {}).get("completionTime"):
                return  # its HoldfastJob was deleted after the end; another one would run it again
            mistakes = self._create(manifest)
        elif child is not None:
            self._mirror(manifest, child)
        known = read_status(child.get("status") or {}) if child is not None else Status()
        self._write(manifest, known, mistakes)
        if child is not None and known.has_ended:
            self._clean(manifest, known)

    def _create(self, manifest: Object) -> list[str]:
        if not self._may_write():
            return []
        body, client = to_holdfast_job(manifest), self._access.client()
        namespace = manifest["metadata"]["namespace"]
        try:
            client.create(jobs_path(namespace), body)
        except KubernetesError as error:
            if error.code == _CONFLICT:
                there = client.get(jobs_path(namespace, body["metadata"]["name"]))
                return [] if owner_uid(there) == manifest["metadata"]["uid"] else [_name_taken(manifest)]
            if 400 <= error.code < 500 and error.code not in (_GONE, 429):
                return [str(error)]
            raise
        self._report(f"job {namespace}/{manifest['metadata']['name']}: HoldfastJob {body['metadata']['name']}: created")
        return []

    def _mirror(self, manifest: Object, child: Object) -> None:
        spec = to_holdfast_job(manifest)["spec"]
        changes: Object = {}
        for name in _MIRRORED:
            old, new = child["spec"].get(name), spec[name]
            if old != new:
                gone = {key: None for key in old if key not in new} if isinstance(old, dict) else {}
                changes[name] = {**gone, **new} if isinstance(new, dict) else new
        size, known = child["spec"]["nodes"]["size"], read_status(child.get("status") or {})
        if (grown := grown_size(manifest, size, known, now_s=self._clock())) != size:
            changes["nodes"] = {"size": grown}
        if changes and self._may_write():
            path = jobs_path(child["metadata"]["namespace"], child["metadata"]["name"])
            self._access.client().patch(path, {"spec": changes})

    def _write(self, manifest: Object, known: Status, mistakes: list[str]) -> None:
        status = hyperpod_status(manifest, known, mistakes=mistakes)
        current = manifest.get("status") or {}
        if all(current.get(name) == value for name, value in status.items()) or not self._may_write():
            return
        metadata = manifest["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        try:
            path = hyperpod_jobs_path(metadata["namespace"], metadata["name"])
            self._access.client().patch(f"{path}/status", body)
        except KubernetesError as error:
            if error.code not in (_GONE, _CONFLICT):  # decided again from the newer object
                raise

    def _clean(self, manifest: Object, known: Status) -> None:
        """Delete pods as ``cleanPodPolicy`` has it, and the job after its time."""
        metadata, policy = manifest["metadata"], manifest["spec"].get("runPolicy") or {}
        phases = {"All": ("Succeeded", "Failed"), "OnlyComplete": ("Succeeded",), "None": ()}
        removed = phases[policy.get("cleanPodPolicy") or "All"]
        key = metadata["namespace"], child_name(manifest)
        for pod in self._cache.pods_of(key):
            ended = (pod.get("status") or {}).get("phase") in removed
            if ended and not pod["metadata"].get("deletionTimestamp") and self._may_write():
                path = pods_path(key[0], pod["metadata"]["name"])
                self._access.client().delete(path, uid=pod["metadata"]["uid"])
        ttl_s, ended_s = policy.get("ttlSecondsAfterFinished"), known.completed_s
        if ttl_s is None or ttl_s < 0 or ended_s is None or self._clock() < ended_s + ttl_s or not self._may_write():
            return
        self._report(f"job {key[0]}/{metadata['name']}: delete: it ended {ttl_s} s ago")
        self._access.client().delete(hyperpod_jobs_path(key[0], metadata["name"]), uid=metadata["uid"])


def _name_taken(manifest: Object) -> str:
    return (
        f"metadata.name and spec.replicaSpecs[0].name: got {child_name(manifest)!r}, the name of a HoldfastJob that "
        "is not this job's; allowed: another name"
    )
