"""Marks and the decider on a real API server, each with the rights of its role and no more."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from kubernetes_pki import Pki
from simulated_nodes import Agent, Board, run

from holdfast_agent.remedies import Decider, KubernetesMarks, RemedySettings
from holdfast_agent.signals import Happening
from holdfast_common import KubernetesClient, Lease, Remedy, When, kinds
from holdfast_common.decisions import NodeState, Order, Report, Stage

pytestmark = pytest.mark.kubernetes

HEALTH = "sagemaker.amazonaws.com/node-health-status"
RULES: dict[str, list[dict[str, Any]]] = {
    "agent": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
    "decider": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "list"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "patch"]},
    ],
}
"""Those of the chart; docs/concepts/remedies.md has the same."""
REPORT = Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, instance="i-1", has_left=True)


class Cluster:
    """Two nodes, and the service accounts of ``RULES``."""

    def __init__(self, directory: Path, binaries: Any) -> None:
        self.directory = directory
        self.pki = Pki(directory / "pki")
        self.api = ApiServer(binaries=binaries, directory=directory, pki=self.pki, flags=["--authorization-mode=RBAC"])
        for name in ("hyperpod-i-1", "hyperpod-i-2"):
            self.join(name)
        self.tokens = {name: self._account(name, rules) for name, rules in RULES.items()}

    def _account(self, name: str, rules: list[dict[str, Any]]) -> str:
        self.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self.post(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
        self.post(f"{rbac}/clusterrolebindings", binding)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", asked)
        return str(answer["status"]["token"])

    def client(self, account: str) -> KubernetesClient:
        authority = Path(self.pki.authority).read_text()
        return KubernetesClient(endpoint=self.api.url, authority=authority, token=self.tokens[account])

    def join(self, name: str) -> None:
        labels = {HEALTH: "Schedulable", "sagemaker.amazonaws.com/compute-type": "hyperpod"}
        self.post("/api/v1/nodes", {"kind": "Node", "metadata": {"name": name, "labels": labels}})

    def post(self, path: str, body: dict[str, Any]) -> Any:
        status, answer = self.api.request("POST", path, body)
        assert status in (200, 201), answer
        return answer

    def node(self, name: str) -> Any:
        status, answer = self.api.request("GET", f"/api/v1/nodes/{name}")
        assert status == 200
        return answer

    def label(self, name: str, value: str) -> None:
        kind = {"Content-Type": "application/merge-patch+json"}
        body = {"metadata": {"labels": {HEALTH: value}}}
        assert self.api.request("PATCH", f"/api/v1/nodes/{name}", body, **kind)[0] == 200

    def marks(self, name: str) -> KubernetesMarks:
        return KubernetesMarks(client=lambda: self.client("agent"), host=name)

    def decider(
        self, happenings: list[Happening], *, share: float = 0.1, may_act: Callable[[], bool] = lambda: True
    ) -> Decider:
        settings = RemedySettings(mode="act", way="label", orchestrator="eks", share=share)
        marks = KubernetesMarks(client=lambda: self.client("decider"))
        return Decider(settings=settings, marks=marks, report=happenings.append, may_act=may_act)

    def order(self, name: str) -> Order | None:
        return self.marks(name).own().order

    def clear(self) -> None:
        marks = KubernetesMarks(client=lambda: self.client("decider"))
        for name in ("hyperpod-i-1", "hyperpod-i-2"):
            self.label(name, "Schedulable")
            self.marks(name).report(None)
            marks.write(NodeState(name), None)
        for event in self.api.request("GET", "/api/v1/namespaces/default/events")[1]["items"]:
            self.api.request("DELETE", f"/api/v1/namespaces/default/events/{event['metadata']['name']}")


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), request.getfixturevalue("binaries"))
    yield made
    made.api.stop()


@pytest.fixture
def cluster(served: Cluster) -> Cluster:
    served.clear()
    return served


def condition(cluster: Cluster) -> tuple[str, str]:
    conditions = cluster.node("hyperpod-i-1")["status"]["conditions"]
    (found,) = [one for one in conditions if one["type"] == "HoldfastHealth"]
    return found["status"], found["reason"]


def test_a_claim_is_an_annotation_and_a_condition_and_is_taken_back(cluster: Cluster) -> None:
    cluster.marks("hyperpod-i-1").report(REPORT)
    decider = cluster.decider([])
    assert decider.look()
    assert (cluster.order("hyperpod-i-1") or Order(Stage.ALLOW)).stage is Stage.CLAIM
    assert condition(cluster) == ("False", "GpuLost")
    assert cluster.node("hyperpod-i-1")["metadata"]["labels"][HEALTH] == "Schedulable", "HyperPod is not asked yet"
    cluster.marks("hyperpod-i-1").report(None)
    assert decider.look()
    assert cluster.order("hyperpod-i-1") is None
    assert condition(cluster)[0] == "True"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("UnschedulablePendingReplacement", "under-way"),
        ("UnschedulablePendingReboot", "under-way"),
        ("Unschedulable", "foreign"),
    ],
)
def test_a_label_that_is_not_ours_is_never_overwritten(cluster: Cluster, value: str, why: str) -> None:
    happenings: list[Happening] = []
    cluster.label("hyperpod-i-1", value)
    cluster.marks("hyperpod-i-1").report(REPORT)
    for _ in range(4):
        cluster.decider(happenings).look()
    assert [one.detail["why"] for one in happenings] == [why]
    assert cluster.node("hyperpod-i-1")["metadata"]["labels"][HEALTH] == value


def test_a_node_that_hyperpods_own_agent_has_labelled_counts_for_the_breaker(cluster: Cluster) -> None:
    happenings: list[Happening] = []
    cluster.label("hyperpod-i-2", "UnschedulablePendingReplacement")
    cluster.marks("hyperpod-i-1").report(REPORT)
    cluster.decider(happenings).look()
    assert [one.detail["why"] for one in happenings] == ["breaker"]


def test_successors_and_a_second_decider_request_once_and_remember_a_node_that_is_gone(cluster: Cluster) -> None:
    """Each pass is of a new decider, as if the previous one had been killed."""
    happenings: list[Happening] = []
    cluster.marks("hyperpod-i-1").report(REPORT)
    for _ in range(6):
        cluster.decider(happenings).look()
    assert cluster.node("hyperpod-i-1")["metadata"]["labels"][HEALTH] == "UnschedulablePendingReplacement"
    assert [(one.kind, one.node, one.detail["way"]) for one in happenings] == [(kinds.REMEDY_REQUESTED, "i-1", "label")]
    assert cluster.api.request("DELETE", "/api/v1/nodes/hyperpod-i-1")[0] == 200
    cluster.marks("hyperpod-i-2").report(REPORT)
    for _ in range(3):
        cluster.decider(happenings).look()
    assert "hyperpod-i-1 of 1 nodes" in happenings[-1].evidence
    assert cluster.node("hyperpod-i-2")["metadata"]["labels"][HEALTH] == "Schedulable"
    cluster.join("hyperpod-i-1")


def test_of_two_deciders_the_one_with_the_lease_acts(cluster: Cluster) -> None:
    happenings: list[Happening] = []
    leases = [
        Lease(
            lambda: cluster.client("decider"),
            name="holdfast-decider",
            namespace="default",
            identity=name,
            report=lambda _: None,
        )
        for name in ("a", "b")
    ]
    for lease in leases:
        lease.renew()
    cluster.marks("hyperpod-i-1").report(REPORT)
    first, second = (cluster.decider(happenings, may_act=lambda lease=lease: lease.is_held) for lease in leases)  # type: ignore[misc]
    assert (second.look(), first.look()) == (False, True)


@pytest.mark.parametrize("absence", [pytest.param("frozen", marks=pytest.mark.e2e), "ended"])
def test_an_api_server_that_is_away_for_ten_minutes_is_said_once_and_waited_for(cluster: Cluster, absence: str) -> None:
    """The server is away in earnest; the ten minutes are those of the agent's clock, which the test moves."""
    agent = Agent(Board(["hyperpod-i-1"]), "hyperpod-i-1", way="label", marks=cluster.marks("hyperpod-i-1"))
    with getattr(cluster.api, absence)():
        agent.accuse()
        run([agent], for_s=600, each_s=30.0)
        assert [one.detail["why"] for one in agent.own] == ["unanswered"]
    run([agent], for_s=1)
    report = cluster.marks("hyperpod-i-1").own().report
    assert report is not None
    assert (report.incident, agent.remediator.problem) == ("i1", "")


@pytest.mark.parametrize("account", RULES)
def test_a_role_may_nothing_else(cluster: Cluster, account: str) -> None:
    refused = [
        ("GET", "/api/v1/secrets"),
        ("DELETE", "/api/v1/nodes/hyperpod-i-2"),
        ("GET", "/api/v1/namespaces/default/pods/x"),
        ("POST", "/api/v1/namespaces/default/pods"),
    ]
    of_the_decider = [("GET", "/api/v1/nodes"), ("GET", "/api/v1/pods"), ("POST", "/api/v1/namespaces/default/events")]
    for method, path in [*refused, *(of_the_decider if account == "agent" else [])]:
        body = {"metadata": {"name": "x"}} if method == "POST" else None
        assert cluster.api.request(method, path, body, token=cluster.tokens[account])[0] == 403, path
