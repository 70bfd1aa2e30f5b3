"""Watch the Nodes of one cluster. A new Node gets its pod network here; HyperPod's control plane acts on labels."""

import threading
import time
from collections.abc import Callable, Mapping

from holdfast.localcloud.kubernetes.model import Object
from holdfast.localcloud.kubernetes.nodes.files import pod_network
from holdfast.localcloud.kubernetes.nodes.labels import ASKED_BY_LABEL, HEALTH_LABEL, instance_of
from holdfast.localcloud.supervision import Worker
from holdfast_common import KubernetesClient, KubernetesError

NODES = "/api/v1/nodes"
PAUSE_S = 0.3
LATE_AFTER_S = 300.0
"""A watch is silent while no node changes; it is begun again after 240 s."""
WATCH_ERRORS = (KubernetesError, OSError, ValueError)


class Roster:
    """One thread. ``route`` gets a pod network and its node's address before pods exist."""

    def __init__(
        self, *, api: KubernetesClient, route: Callable[[str, str], None], on_change: Callable[[], None]
    ) -> None:
        self._api, self._route, self._on_change = api, route, on_change
        self._condition = threading.Condition()
        self._nodes: dict[str, Object] = {}
        self._stopping = threading.Event()
        self.worker = Worker(name="nodes", work=self._run, stopping=self._stopping, late_after_s=LATE_AFTER_S)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()

    def nodes(self) -> Mapping[str, Object]:
        with self._condition:
            return dict(self._nodes)

    def requested(self) -> dict[str, str]:
        """Return instance id -> reboot or replace, from the health labels."""
        found = {}
        for name, node in self.nodes().items():
            verb = ASKED_BY_LABEL.get(health(node))
            if verb and (instance_id := instance_of(name)):
                found[instance_id] = verb
        return found

    def heartbeat(self, name: str) -> str:
        """Return a Node's last heartbeat; empty for an unknown Node."""
        with self._condition:
            return heartbeat(self._nodes[name]) if name in self._nodes else ""

    def wait(
        self, name: str, reached: Callable[[Object], bool], *, timeout_s: float, is_over: Callable[[], bool]
    ) -> bool:
        """Return True once a Node has reached a state; False on timeout or if ``is_over`` returns True."""
        deadline = time.monotonic() + timeout_s
        with self._condition:
            while not (name in self._nodes and reached(self._nodes[name])):
                left = deadline - time.monotonic()
                if left <= 0 or is_over():
                    return False
                self._condition.wait(min(left, 0.5))
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for kind, found in self._api.watch(NODES, is_over=self._stopping.is_set):
                    self._learn(kind, found)
                    self.worker.passed()
            except WATCH_ERRORS:
                self._stopping.wait(PAUSE_S)
            self.worker.passed()

    def _learn(self, kind: str, found: Object) -> None:
        nodes = found["items"] if kind == "SYNC" else [found]
        with self._condition:
            before = {name: _relevant(node) for name, node in self._nodes.items()}
            if kind == "SYNC":
                self._nodes = {node["metadata"]["name"]: node for node in nodes}
            elif kind == "DELETED":
                self._nodes.pop(found["metadata"]["name"], None)
            else:
                self._nodes[found["metadata"]["name"]] = found
            after = {name: _relevant(node) for name, node in self._nodes.items()}
            self._condition.notify_all()
        for node in nodes:
            if kind != "DELETED" and not node["spec"].get("podCIDR"):
                self._give_network(node)
        if before != after:
            self._on_change()

    def _give_network(self, node: Object) -> None:
        """Assign the pod network, which the kubelet requires before Ready."""
        found = [one["address"] for one in node["status"].get("addresses", ()) if one["type"] == "InternalIP"]
        if not found:
            return
        network = pod_network(found[0])
        self._route(network, found[0])
        self._api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"podCIDR": network, "podCIDRs": [network]}})


def is_ready(node: Object, *, after: str = "") -> bool:
    """Return True if the Node reports Ready, except with the heartbeat ``after``, of before a reboot."""
    conditions = node["status"].get("conditions", ())
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and heartbeat(node) != after


def heartbeat(node: Object) -> str:
    """Return the time of the kubelet's last status; empty before the first."""
    conditions = node["status"].get("conditions", ())
    return next((str(one["lastHeartbeatTime"]) for one in conditions if one["type"] == "Ready"), "")


def health(node: Object) -> str:
    return str(node["metadata"].get("labels", {}).get(HEALTH_LABEL, ""))


def _relevant(node: Object) -> tuple[str, bool, bool]:
    return health(node), is_ready(node), bool(node["spec"].get("podCIDR"))
