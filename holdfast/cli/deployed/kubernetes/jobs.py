"""Jobs of a cluster under Kubernetes: list, output, outcome, deletion."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.cli.deployed.finished_jobs import LINES, MOST_SHOWN, JobRow, shown_span, shown_time
from holdfast.cli.deployed.kubernetes.login import sign_in
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.kubernetes import (
    OPERATORS,
    JobName,
    ManifestError,
    Object,
    PodRecord,
    Workload,
    image_hint,
    job_name_of,
    parse_job_name,
    workloads,
)
from holdfast.cli.terminal import CommandError
from holdfast_common import JOB_API, JOB_PLURAL, KubernetesClient, KubernetesError

KINDS = {"batch/v1": "jobs", "apps/v1": "statefulsets"}
LOG_LINES = "tailLines"
_NO_LOG = (400, 404, 500)
"""A container that has not begun, a pod that is gone, a node that is gone."""


def check_kubernetes_job(job: str) -> JobName:
    """Return the parsed name. Raises: CommandError: it is none."""
    try:
        return parse_job_name(job)
    except ManifestError as error:
        raise CommandError(str(error)) from None


def known_workloads(context: Context) -> list[Workload]:
    """All jobs of the cluster whose objects exist. Raises: CommandError: the API server refuses or is down."""
    client = sign_in(context).client
    try:
        return workloads(_objects(client), client.items("/api/v1/pods"))
    except KubernetesError as error:
        raise CommandError(f"the jobs of the cluster cannot be listed: {error}", exit_code=1) from None


def workload(context: Context, *, job: str) -> Workload | None:
    requested = check_kubernetes_job(job)
    return next((one for one in known_workloads(context) if one.job == requested), None)


def operated_sizes(context: Context) -> dict[JobName, tuple[int, int]]:
    """
    Spare nodes of each HoldfastJob, and its fewest nodes (0: its size is fixed), by the job that it is or carries out.

    Its definition is open, so a value that the operator refuses counts as none. Raises: CommandError.
    """
    client = sign_in(context).client
    try:
        found = _listed(client, version=JOB_API, plural=JOB_PLURAL)
    except KubernetesError as error:
        raise CommandError(f"the HoldfastJobs of the cluster cannot be listed: {error}", exit_code=1) from None
    return {_requested_by(one): _sizes(one["spec"].get("nodes")) for one in found}


def _sizes(nodes: Any) -> tuple[int, int]:
    given = nodes if isinstance(nodes, dict) else {}
    listed = given.get("sizes")
    sizes = listed if isinstance(listed, list) else [given.get(name) for name in ("min", "size", "max")]
    whole = [one for one in sizes if isinstance(one, int)]
    spares = given.get("spares")
    return spares if isinstance(spares, int) else 0, min(whole) if len(set(whole)) > 1 else 0


def _requested_by(job: Object) -> JobName:
    """Return the HyperPodPyTorchJob that a HoldfastJob carries out, or itself."""
    owners = job["metadata"].get("ownerReferences") or ()
    name = next((one["name"] for one in owners if one.get("controller")), "")
    return replace(job_name_of(job), name=name) if name else job_name_of(job)


def _objects(client: KubernetesClient) -> list[Object]:
    served = {group["name"] for group in client.get("/apis")["groups"]}
    found = []
    for version, plural in {**KINDS, **OPERATORS}.items():
        if version.partition("/")[0] in served:
            found += _listed(client, version=version, plural=plural)
    return found


def _listed(client: KubernetesClient, *, version: str, plural: str) -> list[Object]:
    try:
        answer = client.get(f"/apis/{version}/{plural}")
    except KubernetesError as error:
        if error.code == 404 and version in OPERATORS:
            return []  # an operator of the same group, in another version
        raise
    kind = str(answer["kind"]).removesuffix("List")
    return [{**one, "kind": kind, "apiVersion": version} for one in answer["items"]]


def kubernetes_outcome(context: Context, *, job: str) -> str:
    """Complete, Failed, or gone; empty while the job runs."""
    found = workload(context, job=job)
    if found is None:
        return "gone"
    return found.state if found.has_ended else ""


def kubernetes_output(context: Context, *, job: str, since_ns: int | None = None) -> list[tuple[str, list[str]]]:
    """Return (pod, or pod/container; lines) of each container with output. Raises: CommandError: no such job."""
    found = workload(context, job=job)
    if found is None:
        raise CommandError(f"Kubernetes has no job {job}; to list jobs: holdfast jobs")
    client = sign_in(context).client
    stamp = "" if since_ns is None else shown_time(since_ns // 1_000_000_000)
    limits = {"sinceTime": stamp} if stamp else {}
    return [
        (pod.name if len(pod.containers) == 1 else f"{pod.name}/{container}", lines)
        for pod in found.pods
        for container in pod.containers
        if (lines := _lines(client, pod, container, **limits)) is not None
    ]


def _lines(client: KubernetesClient, pod: PodRecord, container: str, **limits: str) -> list[str] | None:
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/log"
    try:
        return client.text(path, container=container, **limits).splitlines()
    except KubernetesError as error:
        if error.code in _NO_LOG:
            return None
        raise CommandError(f"pod {pod.name} cannot be read: {error}", exit_code=1) from None


def cancel_workloads(context: Context, jobs: Sequence[Workload]) -> None:
    """Delete the objects of jobs, and so their pods; ConfigMaps and Secrets stay. Raises: CommandError."""
    client = sign_in(context).client
    requested = {one.job for one in jobs}
    try:
        objects = [*_objects(client), *({**pod, "kind": "Pod"} for pod in client.items("/api/v1/pods"))]
        for one in objects:
            if _belongs(one, requested):
                client.delete(_path(one))
    except KubernetesError as error:
        raise CommandError(f"not all of it is deleted: {error}", exit_code=1) from None


def _belongs(one: Object, requested: set[JobName]) -> bool:
    controlled = any(owner.get("controller") for owner in one["metadata"].get("ownerReferences") or ())
    return not controlled and job_name_of(one) in requested


def _path(one: Object) -> str:
    metadata = one["metadata"]
    where = f"namespaces/{metadata['namespace']}"
    if one["kind"] == "Pod":
        return f"/api/v1/{where}/pods/{metadata['name']}"
    plural = {**KINDS, **OPERATORS}[one["apiVersion"]]
    return f"/apis/{one['apiVersion']}/{where}/{plural}/{metadata['name']}"


def workload_rows(context: Context, found: Iterable[Workload]) -> list[JobRow]:
    """Rows of workloads; the newest failed ones have their last lines."""
    rows, explained = [], 0
    for one in found:
        lines: list[str] = []
        if one.state == "Failed" and explained < MOST_SHOWN:
            explained += 1
            lines = _last_lines(context, one)
        is_local = context.session.cloud == "embedded"
        rows.append(workload_row(one, last_lines=lines, now_s=int(time.time()), is_local=is_local))
    return rows


def workload_row(one: Workload, *, last_lines: list[str], now_s: int, is_local: bool = False) -> JobRow:
    """Row of a workload; ``is_local``: the cluster has only the images of this machine."""
    return JobRow(
        job_id=str(one.job),
        name=one.kinds,
        user="",
        state=one.state,
        exit_code=one.exit_code,
        submitted=shown_time(one.created_s),
        started="",
        ended=shown_time(one.ended_s),
        elapsed=shown_span((one.ended_s or now_s) - one.created_s),
        nodes=",".join(one.nodes),
        why=one.why,
        last_lines=last_lines,
        hint=image_hint(one.why) if is_local else "",
    )


def _last_lines(context: Context, one: Workload) -> list[str]:
    client = sign_in(context).client
    for pod in sorted(one.pods, key=lambda each: not each.exit_code):
        for container in reversed(pod.containers):
            if lines := _lines(client, pod, container, **{LOG_LINES: str(LINES)}):
                return lines
    return []
