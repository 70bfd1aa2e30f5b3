"""
Marks in Kubernetes: a report and an order in annotations of a node, HyperPod's request in its label.

Source: SageMaker developer guide, "Resilience-related Kubernetes labels by SageMaker HyperPod". A request is also an
Event, which the API server keeps for an hour: a replaced node loses its annotations.
"""

import calendar
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Optional

from holdfast_agent.remedies.seams import RefusedError
from holdfast_common import NODE_HEALTH_LABEL, KubernetesClient
from holdfast_common.decisions import NodeState, Order, Report, Stage, depends_on_jobs

VALUES = {"reboot": "UnschedulablePendingReboot", "replace": "UnschedulablePendingReplacement"}
FREE = ("", "Schedulable")
ORDER, REPORT = "health.holdfast/remedy", "health.holdfast/verdict"
CONDITION = "HoldfastHealth"
EVENT = "HoldfastRemedyRequested"
_HYPERPOD = "sagemaker.amazonaws.com/compute-type=hyperpod"
_DAEMONS = ("DaemonSet", "Node")
_NODES = "/api/v1/nodes"


class KubernetesMarks:
    """``client``: made for each use, since tokens are renewed; ``host``: of a node's agent."""

    def __init__(self, *, client: "Callable[[], KubernetesClient]", host: str = "") -> None:
        self._client, self._host = client, host

    def look(self) -> "list[NodeState]":
        client = self._client()
        nodes = client.items(_NODES, labelSelector=_HYPERPOD) or client.items(_NODES)
        found = [_trusted(self._state(node, client)) for node in nodes]
        if not any(node.report for node in found):
            return found
        here = {node.name for node in found}
        events = client.items("/api/v1/events", fieldSelector=f"reason={EVENT},involvedObject.kind=Node")
        asked = {str(event["involvedObject"].get("name")): _since(event) for event in events}
        # A node that is gone still counts; a new one of the same name has lost its mark.
        return [
            *found,
            *(
                NodeState(name, order=Order(Stage.ASKED, since_s=at), is_gone=True)
                for name, at in asked.items()
                if name not in here
            ),
        ]

    def node(self, name: str) -> NodeState:
        client = self._client()
        return _trusted(self._state(client.get(f"{_NODES}/{name}"), client))

    def own(self) -> NodeState:
        client = self._client()
        return self._state(client.get(f"{_NODES}/{self._host}"), client, with_jobs=False)

    def report(self, report: Optional[Report]) -> None:
        self._annotate(self._host, REPORT, None if report is None else report.to_json())

    def write(self, node: NodeState, order: Optional[Order]) -> None:
        self._annotate(node.name, ORDER, None if order is None else order.to_text())
        if order is None or order.stage is Stage.CLAIM:
            self._condition(node, order)

    def ask(self, node: NodeState, remedy: str) -> None:
        """Raises KubernetesError, and RefusedError where the label has a value of others."""
        client = self._client()
        data: Mapping[str, Any] = client.get(f"{_NODES}/{node.name}")["metadata"]
        health = _health(data)
        if health == VALUES[remedy]:
            return
        if health not in FREE:
            why = f"the node has the label {NODE_HEALTH_LABEL}={health}, which is not ours"
            raise RefusedError(why, in_use=health in VALUES.values())
        # With the version that was read: a label of others that comes meanwhile stays.
        labels = {NODE_HEALTH_LABEL: VALUES[remedy]}
        change = {"metadata": {"resourceVersion": data["resourceVersion"], "labels": labels}}
        client.create("/api/v1/namespaces/default/events", _event(node.name, remedy))
        client.patch(f"{_NODES}/{node.name}", change)

    def force(self, node: NodeState, remedy: str) -> None:
        del node, remedy  # a label takes a node with what runs there

    def requeue(self, node: NodeState, task: str) -> None:
        del node, task  # a controller replaces pods

    def _state(self, node: Mapping[str, Any], client: KubernetesClient, *, with_jobs: bool = True) -> NodeState:
        data = node["metadata"]
        marks, health = data.get("annotations") or {}, _health(data)
        order, report = Order.from_text(marks.get(ORDER, "")), Report.from_json(marks.get(REPORT, ""))
        request = next((what for what, value in VALUES.items() if health == value), "")
        is_ours = health in FREE or (request and order is not None and order.stage in (Stage.GO, Stage.ASKED))
        return NodeState(
            name=data["name"],
            report=report,
            order=order,
            request=request,
            foreign="" if is_ours else f"the node has the label {NODE_HEALTH_LABEL}={health}, not ours",
            jobs=_jobs(client, data["name"]) if with_jobs and depends_on_jobs(report, order) else (),
        )

    def _annotate(self, name: str, key: str, value: Optional[str]) -> None:
        self._client().patch(f"{_NODES}/{name}", {"metadata": {"annotations": {key: value}}})

    def _condition(self, node: NodeState, order: Optional[Order]) -> None:
        stamp, is_ill = _stamp(), order is not None and node.report is not None
        fault = node.report.fault if is_ill and node.report is not None else "healthy"
        condition = {
            "type": CONDITION,
            "status": "False" if is_ill else "True",
            "reason": "".join(part.title() for part in fault.split("-")),
            "message": f"{order.remedy} is due" if is_ill and order is not None else "no remedy is due",
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        body = {"status": {"conditions": [condition]}}
        self._client().patch(f"{_NODES}/{node.name}/status", body, kind="strategic-merge-patch")


def _trusted(node: NodeState) -> NodeState:
    """A pod may write the report of its own node alone, so its instance is taken from the node's name."""
    report = node.report
    return replace(node, report=report and replace(report, instance=node.name.removeprefix("hyperpod-")))


def _jobs(client: KubernetesClient, node: str) -> "tuple[frozenset[str], ...]":
    pods = client.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node},status.phase=Running")
    owned = ((pod["metadata"], pod["metadata"].get("ownerReferences") or []) for pod in pods)
    return tuple(
        frozenset([f"{data.get('namespace', '')}/{data['name']}"])
        for data, owners in owned
        if not any(owner.get("kind") in _DAEMONS for owner in owners)
    )


def _event(node: str, remedy: str) -> "dict[str, Any]":
    stamp = _stamp()
    return {
        "metadata": {"generateName": f"{node}.remedy."},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "reason": EVENT,
        "message": f"{remedy} requested by holdfast-agent",
        "type": "Warning",
        "source": {"component": "holdfast-agent"},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


def _health(data: Mapping[str, Any]) -> str:
    return str((data.get("labels") or {}).get(NODE_HEALTH_LABEL, ""))


def _since(event: Mapping[str, Any]) -> float:
    stamp = event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or ""
    try:
        return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0


def _stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


__all__ = ["KubernetesMarks"]
