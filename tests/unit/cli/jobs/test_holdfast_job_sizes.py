"""``holdfast scale`` of a HoldfastJob: the manifest is changed, and no launcher is asked."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.deployed import ask_for_size
from holdfast.cli.terminal import CommandError
from holdfast_common import KubernetesError


class Client:
    def __init__(self, refusal: KubernetesError | None = None) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.refusal = refusal

    def patch(self, path: str, body: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.patched.append((path, body))


def scaled(client: Client, monkeypatch: pytest.MonkeyPatch, *, job: str = "team/night") -> None:
    context: Any = SimpleNamespace(orchestrator="eks")
    monkeypatch.setattr("holdfast.cli.deployed.sizes.workload", lambda *_, **__: SimpleNamespace(kinds="HoldfastJob"))
    monkeypatch.setattr("holdfast.cli.deployed.sizes.sign_in", lambda _: SimpleNamespace(client=client))
    ask_for_size(context, job=job, nodes=4)


def test_the_size_of_the_manifest_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    scaled(client, monkeypatch)
    path = "/apis/holdfast.dev/v1alpha1/namespaces/team/holdfastjobs/night"
    assert client.patched == [(path, {"spec": {"nodes": {"size": 4}}})]


def test_a_size_that_admission_refuses_is_refused_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(KubernetesError(422, "spec.nodes.size: got 4; allowed: 2, 3"))
    with pytest.raises(CommandError, match=r"job team/night: spec\.nodes\.size: got 4; allowed: 2, 3"):
        scaled(client, monkeypatch)
