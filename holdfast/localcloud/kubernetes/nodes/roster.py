"""
The Nodes of one cluster as the API server tells of them, followed by one thread.

A Node that has just registered gets its pod network here; what follows from labels is for the HyperPod control plane.
"""

import calendar
import http.client
import threading
import time
from collections.abc import Callable, Mapping

from holdfast.localcloud.kubernetes.api import Api, ApiError, Object
from holdfast.localcloud.kubernetes.nodes.files import pod_network
from holdfast.localcloud.kubernetes.nodes.labels import ASKED_BY_LABEL, HEALTH_LABEL, instance_of
from holdfast.localcloud.supervision import Worker

NODES = "/api/v1/nodes"
PAUSE_S = 0.3
LATE_AFTER_S = 300.0
"""A watch is silent while no node changes; it is begun again after 240 s."""
UNREACHABLE = (OSError, http.client.HTTPException, ApiError, ValueError)


class Roster:
    """
    One thread.

    Args:
        route: Called with a pod network and the address of its node, before pods are there.
        on_change: Called when a node became ready, was lost or labelled.
    """

    def __init__(self, *, api: Api, route: Callable[[str, str], None], on_change: Callable[[], None]) -> None:
        self._api, self._route, self._on_change = api, route, on_change
        self._condition = threading.Condition()
        self._nodes: dict[str, Object] = {}
        self._stopping = threading.Event()
        self.worker = Worker(name="nodes", work=self._run, stopping=self._stopping, late_after_s=LATE_AFTER_S)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        """The thread ends with its watch; nobody waits for it."""
        self._stopping.set()

    def nodes(self) -> Mapping[str, Object]:
        """By name, as last told."""
        with self._condition:
            return dict(self._nodes)

    def asked(self) -> dict[str, str]:
        """Instance id -> reboot or replace, as the health label of its Node asks."""
        found = {}
        for name, node in self.nodes().items():
            verb = ASKED_BY_LABEL.get(node["metadata"].get("labels", {}).get(HEALTH_LABEL, ""))
            if verb and (instance_id := instance_of(name)):
                found[instance_id] = verb
        return found

    def wait_ready(self, name: str, *, since: float, timeout_s: float, is_over: Callable[[], bool]) -> bool:
        """
        Whether a Node says that it is ready, with a heartbeat not older than ``since`` (seconds since the epoch).

        A Node that came back from a reboot still says what it said before.
        """
        deadline = time.monotonic() + timeout_s
        with self._condition:
            while not (name in self._nodes and is_ready(self._nodes[name], since=since)):
                left = deadline - time.monotonic()
                if left <= 0 or is_over():
                    return False
                self._condition.wait(min(left, 0.5))
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for kind, told in self._api.follow(NODES, is_over=self._stopping.is_set):
                    self._learn(kind, told)
                    self.worker.passed()
            except UNREACHABLE:
                self._stopping.wait(PAUSE_S)
            self.worker.passed()

    def _learn(self, kind: str, told: Object) -> None:
        nodes = told["items"] if kind == "SYNC" else [told]
        with self._condition:
            before = {name: _telling(node) for name, node in self._nodes.items()}
            if kind == "SYNC":
                self._nodes = {node["metadata"]["name"]: node for node in nodes}
            elif kind == "DELETED":
                self._nodes.pop(told["metadata"]["name"], None)
            else:
                self._nodes[told["metadata"]["name"]] = told
            after = {name: _telling(node) for name, node in self._nodes.items()}
            self._condition.notify_all()
        for node in nodes:
            if kind != "DELETED" and not node["spec"].get("podCIDR"):
                self._give_network(node)
        if before != after:
            self._on_change()

    def _give_network(self, node: Object) -> None:
        """The kubelet waits for it before it says that the node is ready."""
        found = [one["address"] for one in node["status"].get("addresses", ()) if one["type"] == "InternalIP"]
        if not found:
            return
        network = pod_network(found[0])
        self._route(network, found[0])
        self._api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"podCIDR": network, "podCIDRs": [network]}})


def is_ready(node: Object, *, since: float = 0.0) -> bool:
    """Whether the Node says so itself, and not only from before."""
    for condition in node["status"].get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return _seconds(condition["lastHeartbeatTime"]) >= int(since)
    return False


def _telling(node: Object) -> tuple[str, bool, bool]:
    """What of a Node matters to somebody who decides about instances."""
    health = node["metadata"].get("labels", {}).get(HEALTH_LABEL, "")
    return health, is_ready(node), bool(node["spec"].get("podCIDR"))


def _seconds(stamp: str) -> float:
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))
