"""Evidence of a job under Kubernetes: conditions and events of its pods, and their output."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.cli.collectors.changes import changes_of_events
from holdfast.cli.collectors.output import failure_in
from holdfast.cli.collectors.program import PROGRAM
from holdfast.cli.deployed import Context, check_kubernetes_job, kubernetes_output, sign_in, workload
from holdfast.cli.diagnosis import (
    DrainedNode,
    Evidence,
    FailureSeen,
    NodeProbe,
    Output,
    PendingJob,
    parse_probe,
    ranks_of,
)
from holdfast.cli.kubernetes import PodRecord, Workload, execute, image_hint, readiness
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, KubernetesClient, KubernetesError

PROBE_S = 8.0
MOST_PODS = 64
MOST_EVENTS = 3


def kubernetes_evidence(context: Context, *, job: str, events: Callable[[float], Sequence[Event]]) -> Evidence:
    """Return the evidence. Raises: CommandError: no such job, or the API server does not answer."""
    found = workload(context, job=str(check_kubernetes_job(job)))
    if found is None:
        raise CommandError(f"Kubernetes has no job {job}; to list jobs: holdfast jobs")
    client, unseen = sign_in(context).client, list[str]()
    is_local = context.session.cloud == "embedded"
    pending = by_reason(
        [pending_pod(pod, _events_of(client, pod), is_local=is_local) for pod in found.pods if _waits(pod)]
    )
    if found.state == "Pending" and not found.pods:
        pending = [PendingJob(name=found.state, words=found.why or "it has no pods yet", place="")]
    output, failure = _output(context, job=job)
    probes = [probe for pod in found.pods[:MOST_PODS] if (probe := _probe(client, pod, unseen)) is not None]
    logged: Sequence[Event] = []
    with contextlib.suppress(Exception):
        logged = events(float(found.created_s))
    failures = [failure] if failure is not None else []
    if found.state == "Failed" and found.why:
        failures.append(FailureSeen(text=found.why))
    return Evidence(
        job=str(found.job),
        state=found.state,
        pending=pending,
        drained=_unready(client, found),
        ranks=sorted((rank for probe in probes for rank in ranks_of(probe)), key=lambda one: one.rank),
        output=output,
        failures=failures,
        changes=changes_of_events(logged, job=job.rpartition("/")[2], since_s=float(found.created_s)),
        unseen=unseen,
    )


def pending_pod(pod: PodRecord, events: Sequence[Mapping[str, Any]], *, is_local: bool) -> PendingJob:
    """Reason of a pod that waits: its container's, its scheduling's, or the newest warning of its events."""
    name, _, words = pod.why.partition(": ")
    warnings = [one for one in events if one.get("type") == "Warning"]
    if not name and warnings:
        name, words = str(warnings[-1].get("reason", "")), str(warnings[-1].get("message", ""))
    beside = "; ".join(dict.fromkeys(str(one.get("message", ""))[:300] for one in warnings[-MOST_EVENTS:]))
    text = f"{name}: {words or beside}" if words or beside else name or "its containers are being created"
    if beside and beside not in text and name:
        text += f" ({beside})"
    fix = image_hint(text) if is_local else ""
    return PendingJob(name=name or "ContainerCreating", words=text, place=f"pod {pod.name}", fix=fix)


def by_reason(pods: Iterable[PendingJob]) -> list[PendingJob]:
    """Return one for all pods with the same reason."""
    found: dict[str, list[PendingJob]] = {}
    for one in pods:
        found.setdefault(one.words, []).append(one)
    names = {words: ", ".join(one.place.removeprefix("pod ") for one in same) for words, same in found.items()}
    return [
        replace(same[0], place=f"pod{'s' if len(same) > 1 else ''} {names[words]}") for words, same in found.items()
    ]


def _waits(pod: PodRecord) -> bool:
    return pod.phase == "Pending" or (bool(pod.why) and pod.phase == "Running")


def _events_of(client: KubernetesClient, pod: PodRecord) -> list[Mapping[str, Any]]:
    try:
        found = client.items(
            f"/api/v1/namespaces/{pod.namespace}/events", fieldSelector=f"involvedObject.uid={pod.uid}"
        )
    except KubernetesError:
        return []
    return sorted(found, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))


def _unready(client: KubernetesClient, found: Workload) -> list[DrainedNode]:
    nodes = []
    for name in found.nodes:
        try:
            state = readiness(client.get(f"/api/v1/nodes/{name}"))
        except KubernetesError as error:
            state = f"gone: {error}"
        if state != "Ready":
            nodes.append(DrainedNode(node=name, state=state, reason="see: kubectl describe node"))
    return nodes


def _output(context: Context, *, job: str) -> tuple[Output, FailureSeen | None]:
    try:
        files = kubernetes_output(context, job=job)
    except (CommandError, KubernetesError):
        return Output(), None
    lines = [line for _, log in files for line in log[-20:] if line.strip()]
    failures = (failure_in(log, host=pod) for pod, log in files)
    return Output(lines=lines[-20:]), next((one for one in failures if one is not None), None)


def _probe(client: KubernetesClient, pod: PodRecord, unseen: list[str]) -> NodeProbe | None:
    if pod.phase != "Running" or not pod.containers:
        return None
    try:
        done = execute(
            client, namespace=pod.namespace, pod=pod.name, container=pod.containers[-1],
            argv=["python3", "-c", PROGRAM], timeout_s=PROBE_S,
        )  # fmt: skip
        return parse_probe(pod.node or pod.name, done.stdout)
    except (KubernetesError, ValueError, KeyError, TypeError) as error:
        unseen.append(f"processes of pod {pod.name}: {error}")
        return None
