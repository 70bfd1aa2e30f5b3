"""
One job at a time: decide from the cache, decide again from the API server, carry out what both have.

The status is written before the actions, with the resource version that it was decided on: a failure is charged once,
and of two operators one is refused.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast_common import ClusterAccess, KubernetesClient, KubernetesError
from holdfast_operator.decisions import Action, CreatePod, Decision, DeletePod, NodeFacts, decide
from holdfast_operator.driver.cache import Cache, Key
from holdfast_operator.driver.cluster import jobs_path, pods_path
from holdfast_operator.driver.logs import Logs
from holdfast_operator.driver.progress import ProgressReader
from holdfast_operator.jobs import INVALID, Job, JobError, Status, read_job, read_status, with_condition
from holdfast_operator.objects import (
    QUEUE_FINALIZER,
    is_held,
    node_facts,
    owner_uid,
    pod_facts,
    pod_of,
    secret_of,
    selector_of,
    service_of,
)

REFUSED_S = 5.0
"""Time until a pod that the API server refused is created again."""
_GONE, _CONFLICT = 404, 409
Object = dict[str, Any]


class Reconciler:
    """
    Carries decisions out.

    Args:
        key: Of the tokens of all runs.
        may_write: Returns False while another operator may hold the lease.
        report: Writes a line of the log.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        cache: Cache,
        key: bytes,
        progress: ProgressReader,
        logs: Logs,
        may_write: Callable[[], bool],
        report: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._cache = cache
        self._key = key
        self._progress = progress
        self._logs = logs
        self._may_write = may_write
        self._report = report
        self._clock = clock
        self._refused: dict[Key, tuple[float, str]] = {}
        """Time and message of the last refused pod of a job."""

    def reconcile(self, manifest: Object) -> None:
        """Decide about a job of the cache, and act. Raises: KubernetesError: the API server does not answer."""
        key = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        nodes = self._cache.nodes()
        first = self._decided(manifest, self._cache.pods_of(key), nodes)
        if not self._is_work(manifest, first):
            return
        client = self._access.client()
        try:
            fresh = client.get(jobs_path(*key))
        except KubernetesError as error:
            if error.code == _GONE:
                return
            raise
        pods = client.items(pods_path(key[0]), labelSelector=selector_of(key[1]))
        second = self._decided(fresh, pods, self._checked(client, nodes, pods, first))
        if not self._may_write() or not self._written(client, fresh, second):
            return
        for action in second.actions:
            if action in first.actions and self._may_write() and not self._carry_out(client, fresh, action):
                return

    def release(self, pod: Object) -> None:
        """Remove Kueue's finalizer from a pod of the cache that it holds. Raises: KubernetesError."""
        metadata = pod["metadata"]
        if not is_held(pod, self._cache.nodes()) or not self._may_write():
            return
        left = [one for one in metadata["finalizers"] if one != QUEUE_FINALIZER]
        body = {"resourceVersion": metadata["resourceVersion"], "finalizers": left}
        try:
            self._access.client().patch(pods_path(metadata["namespace"], metadata["name"]), {"metadata": body})
        except KubernetesError as error:
            if error.code not in (_GONE, _CONFLICT):
                raise

    def _decided(self, manifest: Object, pods: list[Object], nodes: Mapping[str, NodeFacts]) -> Decision:
        key = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        now_s = self._clock()
        try:
            job = read_job(manifest)
        except JobError as error:
            status = read_status(manifest.get("status") or {})
            known = with_condition(status, INVALID, is_true=True, reason="Invalid", message=str(error), now_s=now_s)
            return Decision(status=known)
        if (progress := self._progress.of(key)) is not None and not job.status.has_ended:
            job = replace(job, status=replace(job.status, progress=progress.manifest()))
        if job.log_rules and not job.status.has_ended:
            job = replace(job, status=replace(job.status, rules_off=self._logs.off_of(job)))
        own = [pod for pod in pods if owner_uid(pod) == job.uid]
        facts, trip = [pod_facts(pod) for pod in own], self._logs.trip_of(job)
        found = decide(job, pods=facts, nodes=nodes, now_s=now_s, trip=trip)
        since_s, message = self._refused.get(key, (0.0, ""))
        if not message:
            return found
        actions = found.actions if now_s >= since_s + REFUSED_S else _without_creations(found.actions)
        return replace(found, status=_noted(found.status, message, now_s=now_s), actions=actions)

    def _is_work(self, manifest: Object, decision: Decision) -> bool:
        return bool(decision.actions) or _manifest(manifest, decision.status) != _current(manifest)

    def _checked(
        self, client: KubernetesClient, nodes: Mapping[str, NodeFacts], pods: list[Object], decision: Decision
    ) -> dict[str, NodeFacts]:
        """Read the nodes again on which pods are to be deleted: one answer of a watch takes no pod."""
        uids = {action.uid for action in decision.actions if isinstance(action, DeletePod)}
        names = {pod["spec"].get("nodeName") or "" for pod in pods if pod["metadata"]["uid"] in uids} - {""}
        found = dict(nodes)
        for name in names:
            if (node := _node(client, name)) is None:
                found.pop(name, None)
            else:
                found[name] = node
        return found

    def _written(self, client: KubernetesClient, manifest: Object, decision: Decision) -> bool:
        """Write the status; False: the job has changed since, and is decided again."""
        status = _manifest(manifest, decision.status)
        if status == _current(manifest):
            return True
        metadata = manifest["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        try:
            client.patch(f"{jobs_path(metadata['namespace'], metadata['name'])}/status", body)
        except KubernetesError as error:
            if error.code in (_GONE, _CONFLICT):
                return False
            raise
        before = read_status(manifest.get("status") or {}).state
        if decision.status.state != before:
            found = decision.status.condition(decision.status.state)
            message = f": {found.message}" if found is not None and found.message else ""
            self._report(f"job {_shown(manifest)}: {decision.status.state}{message}")
        return True

    def _carry_out(self, client: KubernetesClient, manifest: Object, action: Action) -> bool:
        """Return False if no more pods are to be created now, as above a quota."""
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        if isinstance(action, CreatePod):
            return self._create(client, read_job(manifest), action)
        try:
            if isinstance(action, DeletePod):
                self._report(f"job {_shown(manifest)}: pod {name}-{action.index}: delete: {action.why}")
                path = pods_path(namespace, f"{name}-{action.index}")
                client.delete(path, uid=action.uid, grace_s=0 if action.is_forced else None)
            else:
                self._report(f"job {_shown(manifest)}: delete: {action.why}")
                client.delete(jobs_path(namespace, name), uid=manifest["metadata"]["uid"])
        except KubernetesError as error:
            if error.code != _CONFLICT:  # another object has the name by now
                raise
        return True

    def _create(self, client: KubernetesClient, job: Job, action: CreatePod) -> bool:
        key = job.namespace, job.name
        try:
            for plural, body in (("services", service_of(job)), ("secrets", secret_of(job, key=self._key))):
                _ensure(client, f"/api/v1/namespaces/{job.namespace}/{plural}", body)
            client.create(pods_path(job.namespace), pod_of(job, action.index, excluded=action.excluded))
        except KubernetesError as error:
            if not 400 <= error.code < 500 or error.code == 429:
                raise
            if error.code == _CONFLICT and self._is_own(client, job, action.index):
                return True
            self._refused[key] = (self._clock(), f"pod {job.name}-{action.index} was refused: {error}")
            self._report(f"job {job.namespace}/{job.name}: {self._refused[key][1]}")
            return error.code == _CONFLICT
        if self._refused.get(key, (0.0, ""))[1].startswith(f"pod {job.name}-{action.index} "):
            del self._refused[key]
        self._report(f"job {job.namespace}/{job.name}: pod {job.name}-{action.index}: created")
        return True

    def _is_own(self, client: KubernetesClient, job: Job, index: int) -> bool:
        """Return True for a pod of this job, or one that is just being deleted."""
        try:
            pod = client.get(pods_path(job.namespace, f"{job.name}-{index}"))
        except KubernetesError as error:
            return error.code == _GONE
        return owner_uid(pod) == job.uid or bool(pod["metadata"].get("deletionTimestamp"))


def _node(client: KubernetesClient, name: str) -> NodeFacts | None:
    try:
        return node_facts(client.get(f"/api/v1/nodes/{name}"))
    except KubernetesError as error:
        if error.code != _GONE:
            raise
    return None


def _ensure(client: KubernetesClient, path: str, body: Object) -> None:
    try:
        client.create(path, body)
    except KubernetesError as error:
        if error.code != _CONFLICT:
            raise


def _without_creations(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(one for one in actions if not isinstance(one, CreatePod))


def _noted(status: Status, message: str, *, now_s: float) -> Status:
    found = status.condition("Running")
    if found is None or status.has_ended:
        return status
    text = f"{found.message}; {message}"
    return with_condition(status, "Running", is_true=found.is_true, reason=found.reason, message=text, now_s=now_s)


def _manifest(manifest: Object, status: Status) -> Object:
    metadata = manifest["metadata"]
    return status.manifest(generation=metadata.get("generation", 1), selector=selector_of(metadata["name"]))


def _current(manifest: Object) -> Object:
    """Return the stored status with the fields that an unset value leaves out."""
    status = manifest.get("status") or {}
    known = _manifest(manifest, read_status(status))
    return {**known, "observedGeneration": status.get("observedGeneration")}


def _shown(manifest: Object) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
