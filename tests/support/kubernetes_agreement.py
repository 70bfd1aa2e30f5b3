"""What Kubernetes and HyperPod say of the same instances, sampled, and where the two disagree. Judging is pure.

A sample is not one moment: instances are asked for before and after Nodes, and pods before them, so that what changed
in between counts for neither side.

Sources, read 2026-11-23: SageMaker developer guide, "Resilience-related Kubernetes labels by SageMaker HyperPod",
"Manually quarantine, replace, or reboot a node", "Scaling down a SageMaker HyperPod cluster"; the name of a Node is
`hyperpod-` and the instance's id (the same guide, "Troubleshooting", and awslabs/awsome-distributed-ai).
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes_http import Api, Refused
from kubernetes_things import condition

PREFIX = "hyperpod-"
ALIVE = frozenset({"Running", "Pending", "SystemUpdating", "DeepHealthCheckInProgress", "ShuttingDown"})
"""Statuses of an instance that is there; an instance that is no more is not listed, or has failed."""
HEALTH = "sagemaker.amazonaws.com/node-health-status"
COLLECTED_AFTER_S = 120.0
"""Pods of a Node that is gone are deleted by Kubernetes' pod garbage collector: 40 s of quarantine, seen every 20 s."""


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    uid: str
    ready: bool
    health: str

    @property
    def instance(self) -> str:
        return self.name.removeprefix(PREFIX)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at everything."""

    at_s: float
    before: Mapping[str, str]
    """Instance id -> status, asked for before the Nodes."""
    nodes: tuple[Node, ...]
    after: Mapping[str, str]
    """Instance id -> status, asked for after the Nodes."""
    places: Mapping[str, str]
    """Pod -> the name of its Node, for pods that are not being deleted; asked for before the Nodes."""


@dataclass
class Observed:
    """Samples of a span of time, the oldest first."""

    samples: list[Sample] = field(default_factory=list)
    failed: int = 0


def disagreements(samples: Sequence[Sample], *, least: int, most: int) -> list[str]:
    """
    What a client could have seen that cannot be; empty: both sides agreed all the while.

    Args:
        least: The fewest instances that the cluster had to have.
        most: The most that it may have had, with those that are on their way out.
    """
    found = [f"at {one.at_s:.2f} s {what}" for one in samples for what in _of_one(one, least=least, most=most)]
    return [*found, *_of_names(samples), *_of_pods(samples)]


def _of_one(sample: Sample, *, least: int, most: int) -> Iterator[str]:
    known = {**sample.before, **sample.after}
    for node in sample.nodes:
        statuses = {listed.get(node.instance, "not listed") for listed in (sample.before, sample.after)}
        if not node.name.startswith(PREFIX):
            yield f"the Node {node.name} has the name of no instance"
        elif node.ready and not statuses & ALIVE:
            yield f"the Node {node.name} is Ready and its instance is {' and '.join(sorted(statuses))}"
        elif node.instance not in known:
            yield f"the Node {node.name} is there and its instance is not"
    there = {node.instance for node in sample.nodes}
    for instance in known:
        both = {listed.get(instance) for listed in (sample.before, sample.after)}
        if both == {"Running"} and instance not in there:
            yield f"the instance {instance} is Running and has no Node"
    if not least <= len(sample.after) <= most:
        yield f"there are {len(sample.after)} instances, not {least} to {most}"


def _of_names(samples: Sequence[Sample]) -> Iterator[str]:
    """A Node that went does not come back, and a name is one Node's for good."""
    first: dict[str, str] = {}
    gone: set[str] = set()
    before: set[str] = set()
    for sample in samples:
        now = {node.name for node in sample.nodes}
        gone |= before - now
        for node in sample.nodes:
            if node.name in gone:
                yield f"at {sample.at_s:.2f} s the Node {node.name} came back"
            elif first.setdefault(node.name, node.uid) != node.uid:
                yield f"at {sample.at_s:.2f} s {node.name} is another Node of the same name"
        gone -= now
        before = now


def _of_pods(samples: Sequence[Sample]) -> Iterator[str]:
    """A pod is on a Node that exists, or is collected; nothing is placed on a Node that is gone."""
    since: dict[str, float] = {}
    gone: set[str] = set()
    before: Sample | None = None
    for sample in samples:
        names = {node.name for node in sample.nodes}
        if before is not None:
            gone |= {node.name for node in before.nodes} - names
            for pod, place in sample.places.items():
                if place in gone and place not in before.places.values() and before.places.get(pod) != place:
                    yield f"at {sample.at_s:.2f} s {pod} was placed on {place}, which was gone"
        for pod, place in sample.places.items():
            if place in names:
                since.pop(pod, None)
            elif sample.at_s - since.setdefault(pod, sample.at_s) > COLLECTED_AFTER_S:
                yield f"at {sample.at_s:.2f} s {pod} was still on {place}, which is gone"
        before = sample


def summary(samples: Sequence[Sample]) -> str:
    """What was seen, in a line."""
    ready = [sum(node.ready for node in one.nodes) for one in samples]
    names = {node.name for one in samples for node in one.nodes}
    return (
        f"{len(samples)} samples in {samples[-1].at_s - samples[0].at_s:.1f} s, {len(names)} Nodes in all, "
        f"{min(ready)} to {max(ready)} Ready at a time"
    )


@contextmanager
def watching(api: Api, sagemaker: Any, cluster: str, namespace: str, *, every_s: float = 0.02) -> Iterator[Observed]:
    """Sample all the while."""
    observed, over, began = Observed(), threading.Event(), time.monotonic()

    def look() -> None:
        while not over.is_set():
            try:
                observed.samples.append(_sample(api, sagemaker, cluster, namespace, began=began))
            except (OSError, Refused):
                observed.failed += 1
            over.wait(every_s)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield observed
    finally:
        over.set()
        watcher.join(60)


def instances(sagemaker: Any, cluster: str) -> dict[str, str]:
    """Instance id -> status, as ListClusterNodes says."""
    pages = sagemaker.get_paginator("list_cluster_nodes").paginate(ClusterName=cluster)
    return {
        one["InstanceId"]: one["InstanceStatus"]["Status"] for page in pages for one in page["ClusterNodeSummaries"]
    }


def nodes(api: Api) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=one["metadata"]["name"],
            uid=one["metadata"]["uid"],
            ready=condition(one, "Ready") == "True",
            health=one["metadata"]["labels"].get(HEALTH, ""),
        )
        for one in api.get("/api/v1/nodes")["items"]
    )


def _sample(api: Api, sagemaker: Any, cluster: str, namespace: str, *, began: float) -> Sample:
    before = instances(sagemaker, cluster)
    pods = api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    seen = nodes(api)
    return Sample(
        at_s=time.monotonic() - began,
        before=before,
        nodes=seen,
        after=instances(sagemaker, cluster),
        places={
            one["metadata"]["name"]: one["spec"]["nodeName"]
            for one in pods
            if one["spec"].get("nodeName") and not one["metadata"].get("deletionTimestamp")
        },
    )
