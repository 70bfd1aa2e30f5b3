"""The agent's hands on a real API server, with the rights of their role and no more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from kubernetes_pki import Pki
from simulated_nodes import Agent as SimulatedAgent
from simulated_nodes import Board, run

from holdfast_agent.remedies import (
    Answer,
    Hands,
    KubernetesApi,
    KubernetesBook,
    LabelAsker,
    RemedySettings,
    Request,
    Ruling,
    Stage,
    ruling,
)
from holdfast_common import kinds

pytestmark = pytest.mark.kubernetes

HEALTH = "sagemaker.amazonaws.com/node-health-status"
RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "list"]},
]
"""All that the label way needs; docs/concepts/remedies.md has the same."""


class Cluster:
    """Two nodes, and a service account that has ``RULES``."""

    def __init__(self, directory: Path, binaries: Any) -> None:
        self.directory = directory
        self.pki = Pki(directory / "pki")
        self.api = ApiServer(binaries=binaries, directory=directory, pki=self.pki, flags=["--authorization-mode=RBAC"])
        for name in ("hyperpod-i-1", "hyperpod-i-2"):
            self.join(name)
        self.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "agent"}})
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self.post(f"{rbac}/clusterroles", {"metadata": {"name": "agent"}, "rules": RULES})
        binding = {
            "metadata": {"name": "agent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "agent"},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "default"}],
        }
        self.post(f"{rbac}/clusterrolebindings", binding)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.post("/api/v1/namespaces/default/serviceaccounts/agent/token", asked)["status"]["token"]
        self.account = directory / "account"
        self.account.mkdir()
        (self.account / "token").write_text(token)
        (self.account / "ca.crt").write_bytes(Path(self.pki.authority).read_bytes())

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

    def hands(self, name: str, *, timeout_s: float = 10.0) -> "Agent":
        return Agent(self, name, timeout_s=timeout_s)


class Agent:
    """The hands of one node."""

    def __init__(self, cluster: Cluster, name: str, *, timeout_s: float) -> None:
        settings = RemedySettings(mode="act", way="label", orchestrator="eks", host=name)
        api = KubernetesApi(address=cluster.api.url, account=cluster.account, timeout_s=timeout_s)
        self.hands = Hands(
            settings=settings,
            book=KubernetesBook(settings=settings, api=api),
            asker=LabelAsker(settings=settings, api=api),
        )

    def do(self, deed: str, remedy: str = "", subject: str = "") -> Answer:
        return self.hands.do(Request(number=1, deed=deed, remedy=remedy, subject=subject))


class Served(Board):
    """What all see is the API server."""

    def __init__(self, name: str, hands: Hands) -> None:
        super().__init__([name])
        self._hands = hands

    def do(self, me: str, request: Request) -> Answer:
        return self._hands.do(request)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), request.getfixturevalue("binaries"))
    yield made
    made.api.stop()


def test_a_claim_is_an_annotation_and_a_condition_and_is_taken_back(cluster: Cluster) -> None:
    one, other = cluster.hands("hyperpod-i-1"), cluster.hands("hyperpod-i-2")
    answer = one.do("claim", "replace", "gpu-lost")
    assert answer.outcome == "done", answer.why
    seen = cluster.node("hyperpod-i-1")
    (condition,) = [one for one in seen["status"]["conditions"] if one["type"] == "HoldfastHealth"]
    assert (condition["status"], condition["reason"]) == ("False", "GpuLost")
    assert seen["metadata"]["labels"][HEALTH] == "Schedulable", "HyperPod is not asked yet"
    view = other.do("look").view
    assert view is not None
    assert [(mark.node, mark.stage) for mark in view.marks] == [("hyperpod-i-1", Stage.CLAIM)]
    assert view.nodes == 2
    assert one.do("clear").outcome == "done"
    seen = cluster.node("hyperpod-i-1")
    assert "health.holdfast/remedy" not in (seen["metadata"].get("annotations") or {})
    (condition,) = [one for one in seen["status"]["conditions"] if one["type"] == "HoldfastHealth"]
    assert condition["status"] == "True"


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("UnschedulablePendingReplacement", "in-use"),
        ("UnschedulablePendingReboot", "in-use"),
        ("Unschedulable", "refused"),
    ],
)
def test_a_label_that_is_not_ours_is_never_overwritten(cluster: Cluster, value: str, outcome: str) -> None:
    one = cluster.hands("hyperpod-i-2")
    cluster.label("hyperpod-i-2", value)
    assert one.do("claim", "reboot", "driver-hung").outcome == outcome
    assert one.do("ask", "reboot").outcome == "refused", "without a mark nothing is asked for"
    assert cluster.node("hyperpod-i-2")["metadata"]["labels"][HEALTH] == value
    cluster.label("hyperpod-i-2", "Schedulable")
    assert one.do("go", "reboot").outcome == "done"
    cluster.label("hyperpod-i-2", "Unschedulable")
    assert one.do("ask", "reboot").outcome == "refused"
    assert cluster.node("hyperpod-i-2")["metadata"]["labels"][HEALTH] == "Unschedulable"
    cluster.label("hyperpod-i-2", "Schedulable")
    assert one.do("clear").outcome == "done"


def test_a_node_that_hyperpods_own_agent_has_labelled_counts_for_the_breaker(cluster: Cluster) -> None:
    one = cluster.hands("hyperpod-i-1")
    cluster.label("hyperpod-i-2", "UnschedulablePendingReplacement")
    view = one.do("look").view
    assert view is not None
    assert [(mark.node, mark.stage) for mark in view.marks] == [("hyperpod-i-2", Stage.ASKED)]
    assert ruling(view.marks, me="hyperpod-i-1", nodes=2, share=0.1, now_s=view.now_s) is Ruling.OPEN
    assert (view.foreign, view.asks, view.is_asked) == ("", "", False), "nobody has asked for this node"
    cluster.label("hyperpod-i-2", "Schedulable")
    view = one.do("look").view
    assert view is not None
    assert view.marks == ()


def test_hyperpod_is_asked_by_its_label_and_the_breaker_remembers_a_node_that_is_gone(cluster: Cluster) -> None:
    one, other = cluster.hands("hyperpod-i-1"), cluster.hands("hyperpod-i-2")
    for deed in (("claim", "replace", "gpu-lost"), ("go", "replace"), ("ask", "replace"), ("ask", "replace")):
        answer = one.do(*deed)
        assert answer.outcome == "done", answer.why
    assert cluster.node("hyperpod-i-1")["metadata"]["labels"][HEALTH] == "UnschedulablePendingReplacement"
    view = one.do("look").view
    assert view is not None
    assert (view.is_asked, view.foreign) == (True, "")
    assert cluster.api.request("DELETE", "/api/v1/nodes/hyperpod-i-1")[0] == 200
    seen = other.do("look").view
    assert seen is not None
    assert ("hyperpod-i-1", Stage.ASKED) in [(mark.node, mark.stage) for mark in seen.marks]


@pytest.mark.parametrize("absence", [pytest.param("frozen", marks=pytest.mark.e2e), "ended"])
def test_an_api_server_that_is_away_for_ten_minutes_is_said_once_and_waited_for(cluster: Cluster, absence: str) -> None:
    """The server is away in earnest; the ten minutes are those of the agent's clock, which the test moves."""
    name = f"hyperpod-i-{absence}"
    cluster.join(name)
    hands = cluster.hands(name, timeout_s=0.5).hands
    agent = SimulatedAgent(Served(name, hands), name, share=1.0, way="label")
    with getattr(cluster.api, absence)():
        agent.accuse()
        run([agent], for_s=600, each_s=1.0)
        assert [told.detail["why"] for told in agent.told] == ["unanswered"]
    assert cluster.node(name)["metadata"]["labels"][HEALTH] == "Schedulable"
    run([agent], for_s=60, each_s=1.0)
    assert cluster.node(name)["metadata"]["labels"][HEALTH] == "UnschedulablePendingReplacement"
    assert len(agent.kinds(kinds.REMEDY_REQUESTED)) == 1


def test_the_role_may_nothing_else(cluster: Cluster) -> None:
    token = (cluster.account / "token").read_text()
    refused = [
        ("GET", "/api/v1/secrets"),
        ("DELETE", "/api/v1/nodes/hyperpod-i-2"),
        ("GET", "/api/v1/namespaces/default/pods/x"),
        ("POST", "/api/v1/namespaces/default/pods"),
    ]
    for method, path in refused:
        body = {"metadata": {"name": "x"}} if method == "POST" else None
        assert cluster.api.request(method, path, body, token=token)[0] == 403, path
