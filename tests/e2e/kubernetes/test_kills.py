"""Ten kills of each program of a local EKS, at random moments, under pods that run and somebody who writes.

Kubernetes' programs keep no state but etcd's, and AWS's control plane is replaced under its users (EKS user guide,
disaster-recovery-resiliency); containers outlive their kubelet and, by their shims, containerd.
"""

import os
import random
import secrets
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_http import Api, Refused
from kubernetes_kills import CONTROL_PLANE, Process, allowed_s, lives, processes, read_back, writing
from kubernetes_things import deployment, pod, pods_path, wait_ready
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("HOLDFAST_KILLS", "10"))


class Scene:
    """Pods on every node, and questions that only a living component answers."""

    def __init__(self, api: Api, eks: LocalEks, namespace: str) -> None:
        self.api, self.eks, self.namespace = api, eks, namespace
        nodes = api.get("/api/v1/nodes")["items"]
        self.nodes = {
            address["address"]: node["metadata"]["name"]
            for node in nodes
            for address in node["status"]["addresses"]
            if address["type"] == "InternalIP"
        }
        self.names = [f"runs-{index}" for index in range(len(nodes))]
        for name, node in zip(self.names, self.nodes.values(), strict=True):
            made = pod(name, image=eks.image, restartPolicy="Always", labels={"stays": "yes"}, nodeName=node)
            api.post(pods_path(namespace), made)
        for name in self.names:
            wait_ready(api, namespace, name)

    def pods(self) -> dict[str, tuple[str, ...]]:
        """The pods that were there from the beginning, with what tells one start from the next."""
        return lives(self.api.get(pods_path(self.namespace), labelSelector="stays")["items"])

    def answers(self, component: str, process: Process) -> Callable[[], bool]:
        """A question that is asked again and again until it is answered well; it was not asked before."""
        name = f"asks-{secrets.token_hex(4)}"
        if component in ("kube-apiserver", "etcd"):
            return self._tried(
                lambda: self.api.post(f"/api/v1/namespaces/{self.namespace}/configmaps", {"metadata": {"name": name}})
            )
        if component == "kube-controller-manager":
            path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
            self._made(path, deployment(name, image="x", replicas=0))
            return self._tried(lambda: self.api.get(f"{path}/{name}").get("status", {}).get("observedGeneration"))
        if component == "containerd":
            return self._log_of(self.nodes[process.node])
        where = {} if component == "kube-scheduler" else {"nodeName": self.nodes[process.node]}
        path = pods_path(self.namespace)
        self._made(path, pod(name, image=self.eks.image, **where))
        if component == "kube-scheduler":
            return self._tried(lambda: self.api.get(f"{path}/{name}")["spec"].get("nodeName"))
        return self._tried(lambda: self.api.get(f"{path}/{name}")["status"]["phase"] == "Running")

    def _log_of(self, node: str) -> Callable[[], bool]:
        """For a log the kubelet asks containerd, which then does its work again."""
        name = self.names[list(self.nodes.values()).index(node)]
        path = f"{pods_path(self.namespace, name)}/log"
        return self._tried(lambda: self.api.text(path) == "")

    def take_pods(self) -> None:
        """Every node starts a new pod; the kubelet may have to be told first that its runtime is back."""
        for node in self.nodes.values():
            name = f"new-{secrets.token_hex(4)}"
            self._made(pods_path(self.namespace), pod(name, image=self.eks.image, nodeName=node))
            wait_ready(self.api, self.namespace, name)

    def _made(self, path: str, body: dict[str, Any]) -> None:
        eventually_true(self._tried(lambda: self.api.post(path, body)), "a write", within_s=30)

    @staticmethod
    def _tried(ask: Callable[[], Any]) -> Callable[[], bool]:
        def asked() -> bool:
            try:
                return bool(ask())
            except Refused as error:
                return bool(error.reason == "AlreadyExists")  # the answer to the first try was lost with the server
            except OSError:
                return False

        return asked


@pytest.fixture(scope="module")
def scene(api: Api, local_eks: LocalEks, shared_namespace: str) -> Scene:
    return Scene(api, local_eks, shared_namespace)


def ended_and_back(scene: Scene, component: str, *, chance: random.Random) -> float:
    """Kill one process of a component at some moment; seconds until another one does its work."""
    time.sleep(chance.uniform(0.0, 2.0))
    victim = chance.choice(processes(scene.eks.home, component))
    victim.signal(signal.SIGKILL)
    began = time.monotonic()
    eventually_true(victim.is_over, "its end", every_s=0.01)
    eventually_true(lambda: _successor(scene, component, victim), f"another {component}", every_s=0.05)
    eventually_true(scene.answers(component, victim), f"an answer of {component}", every_s=0.05)
    return time.monotonic() - began


def _successor(scene: Scene, component: str, victim: Process) -> bool:
    return any(one.node == victim.node and one.pid != victim.pid for one in processes(scene.eks.home, component))


@pytest.mark.parametrize("component", [*CONTROL_PLANE, "kubelet", "containerd"])
def test_a_program_that_is_killed_comes_back_and_takes_nothing_with_it(
    scene: Scene, component: str, record_property: Callable[[str, object], None]
) -> None:
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    before = scene.pods()
    with writing(scene.api, scene.namespace) as ledger:
        took = [ended_and_back(scene, component, chance=chance) for _ in range(KILLS)]
        allowed = allowed_s(os.getloadavg()[0])
    record_property("seed", seed)
    record_property("seconds", [round(one, 2) for one in took])
    record_property("acknowledged", len(ledger.acknowledged))
    record_property("longest silence", round(ledger.longest_silence_s, 2))
    print(f"{component}: back in {[round(one, 2) for one in took]} s; {len(ledger.acknowledged)} writes, "
          f"{ledger.failed} failed, longest silence {ledger.longest_silence_s:.2f} s; seed {seed}")  # fmt: skip

    assert max(took) <= allowed
    assert ledger.acknowledged
    assert ledger.lost(read_back(scene.api, scene.namespace)) == []
    eventually_true(lambda: scene.pods() == before, "pods as they were", within_s=20)
    scene.take_pods()


def test_an_api_server_that_stands_still_is_waited_for_and_goes_on(scene: Scene) -> None:
    before = scene.pods()
    [victim] = processes(scene.eks.home, "kube-apiserver")
    with writing(scene.api, scene.namespace) as ledger:
        eventually_true(lambda: len(ledger.acknowledged) > 10, "the first writes")
        victim.signal(signal.SIGSTOP)
        try:
            time.sleep(4)
            held = len(ledger.acknowledged)
            time.sleep(1)
            assert len(ledger.acknowledged) == held
        finally:
            victim.signal(signal.SIGCONT)
        eventually_true(
            lambda: len(ledger.acknowledged) > held, "the next write", within_s=allowed_s(os.getloadavg()[0])
        )

    assert ledger.lost(read_back(scene.api, scene.namespace)) == []
    eventually_true(lambda: scene.pods() == before, "pods as they were", within_s=20)
