"""Add-ons of EKS in a cluster behind which an API server answers: what their status says, and what is left of them."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from installed_charts import Stacks

from holdfast.localcloud.aws import serve
from holdfast_common import KubernetesError

DEPLOYMENT = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"


class Server:
    """An API server in which nothing is made ready unless a test says so."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.down, self.owned = False, ""

    def get(self, path: str) -> dict[str, Any]:
        self._answer()
        if path not in self.kept:
            raise KubernetesError(404, "not found")
        return self.kept[path]

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = False) -> dict[str, Any]:
        self._answer()
        if path.endswith(self.owned or "nobody") and not force:
            raise KubernetesError(409, f"conflict with kubectl, {manager}")
        self.kept[path] = {**body, "metadata": {**body["metadata"], "generation": 1}}
        return self.kept[path]

    def delete(self, path: str) -> None:
        self._answer()
        self.kept.pop(path, None)

    def make_ready(self) -> None:
        for one in self.kept.values():
            if one["kind"] == "Deployment":
                one["status"] = {"observedGeneration": 1, "availableReplicas": one["spec"]["replicas"]}

    def _answer(self) -> None:
        if self.down:
            raise KubernetesError(0, "connection refused")


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        made = Stacks(running)
        yield made
        made.close()


@pytest.fixture
def server(stacks: Stacks, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Behind cluster lab, which has a node."""
    stacks.real_cluster("lab")
    made = Server()
    stacks.behind("lab", made)
    monkeypatch.setattr("holdfast.localcloud.aws.eks.addons.has_nodes", lambda *_, **__: True)
    return made


@pytest.fixture
def addon(stacks: Stacks, server: Server) -> Iterator[Callable[..., Any]]:
    """Makes the add-on coredns of cluster lab."""
    eks = stacks.client("eks")

    def made(**settings: Any) -> Any:
        eks.create_addon(clusterName="lab", addonName="coredns", **settings)
        return lambda: settled(eks)

    yield made
    server.down = False
    eks.delete_addon(clusterName="lab", addonName="coredns")
    eks.get_waiter("addon_deleted").wait(clusterName="lab", addonName="coredns", WaiterConfig={"Delay": 0.05})


def settled(eks: Any) -> tuple[str, list[str]]:
    told = eks.describe_addon(clusterName="lab", addonName="coredns")["addon"]
    return told["status"], [issue["code"] for issue in told["health"]["issues"]]


def test_an_add_on_is_being_created_until_its_pods_are_ready(addon: Any, server: Server) -> None:
    state = addon()
    assert server.kept[DEPLOYMENT]["spec"]["replicas"] == 2
    assert state() == ("CREATING", [])

    server.make_ready()
    while state()[0] == "CREATING":
        pass
    assert state() == ("ACTIVE", [])


def test_an_add_on_that_does_not_get_ready_in_time_is_degraded_and_comes_back(
    addon: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.aws.eks.addon_software.SETTLES_WITHIN", datetime.timedelta(0))
    state = addon()
    while state()[0] == "CREATING":
        pass
    assert state() == ("DEGRADED", ["InsufficientNumberOfReplicas"])

    server.make_ready()
    assert state() == ("ACTIVE", [])

    server.down = True
    assert state() == ("DEGRADED", ["ClusterUnreachable"])


def test_a_conflict_fails_the_creation_unless_it_is_overwritten(addon: Any, server: Server, stacks: Stacks) -> None:
    server.owned = "configmaps/coredns"
    state = addon()
    while state()[0] == "CREATING":
        pass
    assert state() == ("CREATE_FAILED", ["ConfigurationConflict"])

    stacks.client("eks").update_addon(clusterName="lab", addonName="coredns", resolveConflicts="OVERWRITE")
    server.make_ready()
    while state()[0] == "UPDATING":
        pass
    assert state() == ("ACTIVE", [])


def test_preserve_is_for_updates_alone(addon: Any, server: Server) -> None:
    with pytest.raises(ClientError, match="preserve is not supported for operation CreateAddon"):
        addon(resolveConflicts="PRESERVE")
    addon()


@pytest.mark.parametrize(("preserve", "left"), [(False, set()), (True, {DEPLOYMENT})])
def test_a_deletion_takes_its_objects_unless_they_are_preserved(
    stacks: Stacks, server: Server, preserve: bool, left: set[str]
) -> None:
    eks = stacks.client("eks")
    eks.create_addon(clusterName="lab", addonName="coredns")
    eks.delete_addon(clusterName="lab", addonName="coredns", preserve=preserve)
    eks.get_waiter("addon_deleted").wait(clusterName="lab", addonName="coredns", WaiterConfig={"Delay": 0.05})

    assert {path for path in server.kept if path == DEPLOYMENT} == left


def test_a_stack_says_which_add_on_has_no_stand_in(stacks: Stacks, server: Server) -> None:
    resources = {
        name: {"Type": "AWS::EKS::Addon", "Properties": {"ClusterName": "lab", "AddonName": addon_name}}
        for name, addon_name in {"Metrics": "metrics-server", "Cni": "vpc-cni"}.items()
    }
    assert stacks.deploy("create", "addons", resources) == "CREATE_COMPLETE", stacks.events("addons")

    told = stacks.events("addons")
    assert (
        told["Metrics CREATE_COMPLETE"]
        == "add-on metrics-server is recorded only: the local cluster has no stand-in for it"
    )
    assert told["Cni CREATE_COMPLETE"] == ""
    assert stacks.delete("addons") == "DELETE_COMPLETE"
    assert server.kept == {}
