"""One local EKS for all tests of this folder, and the people who use it."""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from closed_network import closed_network
from kubernetes_http import Api, Refused
from kubernetes_product import KubernetesProduct
from kubernetes_things import pod
from local_eks import LocalEks, Person, attached, eventually_true
from local_eks_lab import running_eks

from holdfast.localcloud.kubernetes import Binaries

NAMED = os.environ.get("HOLDFAST_LOCAL_EKS", "")
NODES = 4


@pytest.fixture(scope="session")
def local_eks(tmp_path_factory: pytest.TempPathFactory, binaries: Binaries) -> Iterator[LocalEks]:
    """A local EKS with nodes that run pods: the one that HOLDFAST_LOCAL_EKS describes, else one of its own."""
    if NAMED:
        yield attached(Path(NAMED))
        return
    with running_eks(tmp_path_factory.mktemp("eks") / "home", binaries=lambda: binaries, nodes=NODES) as made:
        yield made


@pytest.fixture(scope="session")
def before(local_eks: LocalEks) -> Iterator[tuple[str, ...]]:
    """What a command is put behind, to be in a network that holds the local EKS and nothing else."""
    with closed_network(local_eks.loopback_ports()) as words:
        yield tuple(words)


@pytest.fixture(scope="session")
def person(
    local_eks: LocalEks, before: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Person]:
    """Somebody with the credentials of a role, who ran `aws eks update-kubeconfig`."""

    def made(role: str) -> Person:
        home = tmp_path_factory.mktemp("person")
        one = Person(home=home, variables=local_eks.assume(role), before=before)
        one.run("aws", "eks", "update-kubeconfig", "--name", local_eks.eks_cluster)
        return one

    return made


@pytest.fixture(scope="session")
def admin(local_eks: LocalEks, person: Callable[[str], Person]) -> Person:
    """An administrator of the cluster."""
    return person(local_eks.admin_role)


@pytest.fixture(scope="session")
def viewer(local_eks: LocalEks, person: Callable[[str], Person]) -> Person:
    """Somebody who may look at everything but secrets."""
    return person(local_eks.view_role)


@pytest.fixture(scope="session")
def api(local_eks: LocalEks, admin: Person) -> Api:
    """Plain HTTPS to the API server, as the administrator."""
    cluster = local_eks.aws("eks").describe_cluster(name=local_eks.eks_cluster)["cluster"]

    def token() -> str:
        printed = admin.run("aws", "eks", "get-token", "--cluster-name", local_eks.eks_cluster)
        return str(json.loads(printed)["status"]["token"])

    return Api(url=cluster["endpoint"], authority=cluster["certificateAuthority"]["data"], token=token)


def takes_pods(api: Api, namespace: str) -> bool:
    """The default service account is there, and its token where the server still makes one as a secret."""
    try:
        api.post(f"/api/v1/namespaces/{namespace}/pods", pod("asked", image="any"), dryRun="All")
    except Refused:
        return False
    return True


@contextmanager
def made_namespace(api: Api) -> Iterator[str]:
    """A namespace whose default service account is there, so that its first pod is not refused."""
    name = f"test-{secrets.token_hex(3)}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        eventually_true(lambda: takes_pods(api, name), "a service account")
        yield name
    finally:
        api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    with made_namespace(api) as name:
        yield name


@pytest.fixture(scope="module")
def shared_namespace(api: Api) -> Iterator[str]:
    with made_namespace(api) as name:
        yield name


@pytest.fixture
def kubernetes_product(new_product: Any, tmp_path: Path) -> Iterator[KubernetesProduct]:
    """Pods ask for GPUs, which the device plugin's chart offers: archives are needed where no network is."""
    folder = os.environ.get("HOLDFAST_CHARTS", "")
    charts = Path(folder) if folder else None
    work = tmp_path / "kubernetes"
    work.mkdir()
    product = new_product(work)
    try:
        yield KubernetesProduct(product=product, charts=charts)
    finally:
        product.run("down")
    assert not product.home.exists()
