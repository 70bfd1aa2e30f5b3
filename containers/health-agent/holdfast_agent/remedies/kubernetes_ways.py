"""
This node in Kubernetes: its mark in an annotation, HyperPod's request in its label.

Source: SageMaker developer guide, "Resilience-related Kubernetes labels by SageMaker HyperPod". A request is also an
Event, which the API server keeps for an hour: a replaced node loses its annotations.
"""

import calendar
import time
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast_agent.remedies.breaker import Mark, Stage
from holdfast_agent.remedies.kubernetes_api import METADATA_ONLY, KubernetesApi
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_ways import RefusedError
from holdfast_agent.remedies.words import Job, View
from holdfast_common import NODE_HEALTH_LABEL

VALUES = {"reboot": "UnschedulablePendingReboot", "replace": "UnschedulablePendingReplacement"}
FREE = ("", "Schedulable")
MARK = "health.holdfast/remedy"
CONDITION = "HoldfastHealth"
EVENT = "HoldfastRemedyRequested"
_HYPERPOD = "sagemaker.amazonaws.com/compute-type=hyperpod"
_DAEMONS = ("DaemonSet", "Node")


class KubernetesBook:
    def __init__(self, *, settings: RemedySettings, api: KubernetesApi) -> None:
        self._name, self._api, self._is_controller = settings.host, api, settings.is_controller

    def look(self) -> View:
        nodes = self._nodes()
        events = self._api.get("/api/v1/events", fieldSelector=f"reason={EVENT},involvedObject.kind=Node").get(
            "items", []
        )
        own = next((node for node in nodes if node["metadata"]["name"] == self._name), None)
        if own is None:
            raise RefusedError(f"Kubernetes has no HyperPod node {self._name}")
        health = _health(own)
        asks = next((what for what, value in VALUES.items() if health == value), "")
        marks = [mark for node in nodes for mark in self._marks(node)]
        ours = any(mark.stage is Stage.ASKED for mark in _marks_of(own))
        known = {mark.node for mark in marks if mark.stage is Stage.ASKED}
        return View(
            me=self._name,
            nodes=len(nodes),
            marks=(*marks, *(mark for mark in _events(events) if mark.node not in known)),
            now_s=self._api.now_s,
            jobs=tuple(self._jobs()),
            foreign=""
            if health in FREE or (ours and asks)
            else f"the node has the label {NODE_HEALTH_LABEL}={health}, not ours",
            asks=asks,
            is_asked=bool(ours and asks),
            is_controller=self._is_controller,
        )

    def _marks(self, node: Mapping[str, Any]) -> Iterator[Mark]:
        name, marks = node["metadata"]["name"], _marks_of(node)
        yield from marks
        if not marks and name != self._name and _health(node) in VALUES.values():
            # HyperPod's agent or a person asked for it: it is being taken now, whoever wanted that.
            yield Mark(node=name, stage=Stage.ASKED, since_s=self._api.now_s)

    def write(self, stage: Stage, remedy: str, fault: str = "") -> None:
        now_s = self._api.now_s or time.time()
        self._annotate(f"{stage.value}:{remedy}:{int(now_s)}")
        if fault:
            self._say(status="False", reason=fault, message=f"{remedy} is due", now_s=now_s)

    def asked(self, remedy: str) -> None:
        self._record(remedy, now_s=self._api.now_s or time.time())

    def clear(self) -> None:
        self._annotate(None)
        self._say(status="True", reason="Healthy", message="no remedy is due", now_s=self._api.now_s or time.time())

    def _nodes(self) -> "list[dict[str, Any]]":
        found = self._api.get("/api/v1/nodes", accept=METADATA_ONLY, labelSelector=_HYPERPOD).get("items") or []
        return found or list(self._api.get("/api/v1/nodes", accept=METADATA_ONLY).get("items") or [])

    def _jobs(self) -> Iterator[Job]:
        selector = f"spec.nodeName={self._name},status.phase=Running"
        pods = self._api.get("/api/v1/pods", accept=METADATA_ONLY, fieldSelector=selector).get("items") or []
        for pod in pods:
            data = pod["metadata"]
            owners = data.get("ownerReferences") or []
            if not any(owner.get("kind") in _DAEMONS for owner in owners):
                name = f"{data.get('namespace', '')}/{data['name']}"
                yield Job(name=name, task="", number="", user=str(data.get("namespace", "")))

    def _annotate(self, value: Any) -> None:
        self._api.patch(f"/api/v1/nodes/{self._name}", {"metadata": {"annotations": {MARK: value}}})

    def _record(self, remedy: str, *, now_s: float) -> None:
        stamp = _stamp(now_s)
        event = {
            "metadata": {"generateName": f"{self._name}.remedy."},
            "involvedObject": {"kind": "Node", "name": self._name, "uid": self._name},
            "reason": EVENT,
            "message": f"{remedy} requested by holdfast-agent",
            "type": "Warning",
            "source": {"component": "holdfast-agent", "host": self._name},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        self._api.post("/api/v1/namespaces/default/events", event)

    def _say(self, *, status: str, reason: str, message: str, now_s: float) -> None:
        stamp = _stamp(now_s)
        camel = "".join(part.title() for part in reason.split("-"))
        condition = {
            "type": CONDITION,
            "status": status,
            "reason": camel,
            "message": message,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        body = {"status": {"conditions": [condition]}}
        self._api.patch(f"/api/v1/nodes/{self._name}/status", body, kind="strategic-merge-patch")


class LabelAsker:
    """Requests by HyperPod's label, unless it has a value of others."""

    def __init__(self, *, settings: RemedySettings, api: KubernetesApi) -> None:
        self._name, self._api = settings.host, api

    def ask(self, remedy: str) -> None:
        node = self._api.get(f"/api/v1/nodes/{self._name}")
        data: Mapping[str, Any] = node["metadata"]
        health = _health(node)
        ours = any(mark.stage is Stage.ASKED for mark in _marks_of(node))
        if health == VALUES[remedy] and ours:
            return
        if health not in FREE and not (ours and health in VALUES.values()):
            why = f"the node has the label {NODE_HEALTH_LABEL}={health}, which is not ours"
            raise RefusedError(why, in_use=health in VALUES.values())
        # With the version that was read: whoever labels it meanwhile comes first.
        change = {
            "metadata": {"resourceVersion": data["resourceVersion"], "labels": {NODE_HEALTH_LABEL: VALUES[remedy]}}
        }
        self._api.patch(f"/api/v1/nodes/{self._name}", change)

    def force(self, remedy: str) -> None:
        self.ask(remedy)


def _health(node: Mapping[str, Any]) -> str:
    return str((node["metadata"].get("labels") or {}).get(NODE_HEALTH_LABEL, ""))


def _marks_of(node: Mapping[str, Any]) -> "tuple[Mark, ...]":
    value = str((node["metadata"].get("annotations") or {}).get(MARK, ""))
    stage, _, rest = value.partition(":")
    remedy, _, since = rest.partition(":")
    try:
        return (Mark(node=node["metadata"]["name"], stage=Stage(stage), remedy=remedy, since_s=float(since or 0)),)
    except ValueError:
        return ()


def _events(items: "list[dict[str, Any]]") -> Iterator[Mark]:
    for item in items:
        stamp = item.get("lastTimestamp") or item["metadata"].get("creationTimestamp") or ""
        try:
            since_s = float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))
        except ValueError:
            continue
        yield Mark(node=str(item["involvedObject"].get("name", "")), stage=Stage.ASKED, since_s=since_s)


def _stamp(now_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))


__all__ = ["KubernetesBook", "LabelAsker"]
