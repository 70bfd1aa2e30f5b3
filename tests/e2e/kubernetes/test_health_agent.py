"""
The health agent as a pod of each node: a fault becomes a condition and a label, and HyperPod brings another node.

A label that somebody else has set stays until he takes it away, whatever the agent finds meanwhile.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_clients import kubectl
from waiting import eventually

from holdfast.localcloud.nodes import Fleet, Node

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(900)]

HEALTH = "sagemaker.amazonaws.com/node-health-status"
NAMESPACE = "holdfast-system"
EVENTS = "/var/log/holdfast/events.jsonl"
SEEN = (
    "{.metadata.name} {.metadata.labels.sagemaker\\.amazonaws\\.com/node-health-status} "
    '{.status.conditions[?(@.type=="HoldfastHealth")].reason}{"\\n"}'
)


class Cluster:
    """A local EKS with agents that act, and kubectl for it."""

    def __init__(self, product: Any, home: Path) -> None:
        self.product, self._home = product, home
        self._variables = json.loads(product.run("env", "--json").stdout)

    def command(self, *words: str) -> list[str]:
        return [str(kubectl("1.34")), *words]

    @property
    def variables(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self._home), **self._variables}

    def kubectl(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words), env=self.variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pods(self) -> dict[str, str]:
        """Node -> its agent's pod, of those that are ready."""
        selected = ["--namespace", NAMESPACE, "--selector", "app.kubernetes.io/name=holdfast-health-agent"]
        listed = json.loads(self.kubectl("get", "pods", *selected, "--output", "json"))["items"]
        return {
            one["spec"]["nodeName"]: one["metadata"]["name"]
            for one in listed
            if any(state["ready"] for state in one["status"].get("containerStatuses", ()))
        }

    def nodes(self) -> dict[str, str]:
        """Node -> what its label says."""
        listed = json.loads(self.kubectl("get", "nodes", "--output", "json"))["items"]
        return {one["metadata"]["name"]: one["metadata"]["labels"].get(HEALTH, "") for one in listed}

    def events(self, kind: str, *, node: str) -> list[dict[str, Any]]:
        lines = self.product.run("events", "--json").stdout.splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [one for one in found if one["kind"] == kind and one["node"] == node]


@pytest.fixture
def cluster(kubernetes_product: Any, tmp_path: Path) -> Cluster:
    environment = kubernetes_product.kubernetes_environment(counts={"system": 1, "workers": 2})
    kubernetes_product.run("up", str(environment))
    made = Cluster(kubernetes_product, tmp_path)
    eventually(lambda: set(made.pods()) == set(made.nodes()), "an agent on each node", within_s=120)
    return made


@pytest.fixture
def seen(cluster: Cluster) -> Iterator[list[list[str]]]:
    """Name, label and condition of nodes, at each change."""
    watching = subprocess.Popen(
        cluster.command("get", "nodes", "--watch", f"--output=jsonpath={SEEN}"),
        env=cluster.variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines: list[list[str]] = []
    assert watching.stdout is not None
    reading = threading.Thread(target=lambda: lines.extend(line.split() for line in watching.stdout or ()))
    reading.start()
    try:
        yield lines
    finally:
        watching.terminate()
        reading.join(timeout=30)
        watching.stdout.close()
        watching.wait(timeout=30)


def shipped(machine: Node) -> int:
    """Lines that the shipper of a node has put into the cluster's log group, by its own account."""
    return int(json.loads(machine.read_file("/var/lib/holdfast-agent/shipped.json"))["lines"])


def test_a_fault_becomes_a_condition_a_label_and_another_node_unless_the_label_is_anothers(
    cluster: Cluster, seen: list[list[str]]
) -> None:
    (instance,) = [
        node["instance_id"] for node in cluster.product.status()["nodes"] if node["instance_group"] == "workers"
    ][:1]
    name = f"hyperpod-{instance}"

    told = cluster.kubectl("exec", "--namespace", NAMESPACE, cluster.pods()[name], "--", "env")
    assert not [line for line in told.splitlines() if line.startswith("AWS_") and ("KEY" in line or "CRED" in line)]

    cluster.kubectl("label", "node", name, f"{HEALTH}=Unschedulable", "--overwrite")
    cluster.product.run("inject", instance, "xid-79")
    eventually(lambda: cluster.events("remedy_refused", node=instance), "a word on the label", within_s=90)
    (verdict,) = cluster.events("verdict", node=instance)
    assert (verdict["fault"], verdict["action"]) == ("gpu-lost", "replace")
    assert cluster.events("remedy_refused", node=instance)[0]["detail"]["why"] == "foreign"
    assert cluster.nodes()[name] == "Unschedulable"
    assert cluster.events("remedy_requested", node=instance) == []

    machine = Fleet(home=cluster.product.home).node(instance)
    assert machine.run(["systemctl", "is-active", "holdfast-events"], timeout_s=10).stdout == "active\n"
    eventually(
        lambda: shipped(machine) == len(machine.read_file(EVENTS).splitlines()), "all events shipped", within_s=30
    )

    before = set(cluster.nodes())
    cluster.kubectl("label", "node", name, f"{HEALTH}=Schedulable", "--overwrite")
    eventually(lambda: name not in cluster.nodes(), "the end of the node", within_s=120)
    eventually(lambda: len(set(cluster.nodes()) - before) == 1, "its replacement", within_s=120)
    (replacement,) = set(cluster.nodes()) - before
    eventually(lambda: replacement in cluster.pods(), "an agent on the replacement", within_s=120)

    (requested,) = cluster.events("remedy_requested", node=instance)
    assert (requested["action"], requested["detail"]["way"]) == ("replace", "label")
    (replacing,) = cluster.events("node_replacing", node=instance)
    assert replacing["evidence"] == "its Kubernetes node is labelled UnschedulablePendingReplacement"
    assert [name, "UnschedulablePendingReplacement", "GpuLost"] in seen
    assert before - {name} == set(cluster.nodes()) - {replacement}, "nobody else was touched"
    (incident,) = json.loads(cluster.product.run("incidents", "--json").stdout)
    assert (incident["fault"], incident["state"], incident["node"]) == ("gpu-lost", "repaired", instance)
