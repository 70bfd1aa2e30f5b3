"""Charts on a real API server, installed by the function of our construct as Lambda runs it."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from bare_kubernetes import ApiServer, api_server
from installed_charts import BUCKET, Stacks, chart_archive, helm_layer, helm_program, installer, our_code, release

from holdfast.catalog import charts
from holdfast.localcloud.aws import serve
from holdfast.localcloud.kubernetes.addons import ConflictError, Facts, install, is_well, objects, remove, workloads
from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast_constructs.eks import chart_values
from holdfast_constructs.eks_addons import volume_values
from holdfast_constructs.helm_installer._archive import tree_sha256
from holdfast_constructs.helm_installer._cluster import Cluster, write_kubeconfig

ROOT = Path(__file__).parents[2]
NOT_TAKEN = yaml.safe_load((ROOT / "tests" / "cases" / "kubernetes" / "not-in-1.20.yaml").read_text())
ARCHIVES = Path(os.environ.get("HOLDFAST_CHARTS") or os.devnull)
needs_charts = pytest.mark.skipif(not ARCHIVES.is_dir(), reason="needs the charts' archives in HOLDFAST_CHARTS")
pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.timeout(300),
]

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\ndata: {a: b}\n"
REFUSED = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: second}\n"
    "spec: {clusterIP: 10.9.9.9, ports: [{port: 80, protocol: TCP}]}\n"
)
UNKNOWN = (
    "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: third}\n"
    "spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}\n"
)
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/first"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, binaries: Binaries) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("kubernetes"), binaries) as running:
        yield running


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory, server: ApiServer) -> Iterator[Stacks]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        made = Stacks(running)
        made.put("code.zip", our_code())
        made.put("layer.zip", helm_layer())
        yield made
        made.close()


def environment(server: ApiServer) -> dict[str, Any]:
    """The function's, as our construct sets it."""
    variables = {
        "CLUSTER_NAME": "lab",
        "CLUSTER_ENDPOINT": server.endpoint,
        "CLUSTER_CERTIFICATE_AUTHORITY": server.certificate_authority,
    }
    return {"Environment": {"Variables": variables}, "Timeout": 120}


def template(server: ApiServer, **releases: Any) -> dict[str, Any]:
    code, layer = ({"S3Bucket": BUCKET, "S3Key": f"{name}.zip"} for name in ("code", "layer"))
    made = installer(code, layer, **environment(server))
    made["Log"]["Properties"] = {}
    return {**made, **releases}


def demo(stacks: Stacks, name: str, *manifests: str, **more: Any) -> dict[str, Any]:
    chart = {"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n"}
    chart |= {f"templates/{number}.yaml": text for number, text in enumerate(manifests)}
    stacks.put(f"charts/{name}.tar.gz", chart_archive(chart))
    digest = tree_sha256({path: text.encode() for path, text in chart.items()})
    return release(
        name, archive={"Bucket": BUCKET, "Key": f"charts/{name}.tar.gz"}, path="charts/demo", digest=digest, **more
    )


def releases_of(server: ApiServer) -> set[str]:
    found = server.ask("/api/v1/namespaces/kube-system/secrets?labelSelector=owner%3Dhelm")["items"]
    return {one["metadata"]["labels"]["name"] for one in found}


def test_a_chart_is_installed_upgraded_and_uninstalled_with_its_stack(stacks: Stacks, server: ApiServer) -> None:
    stacks.real_cluster("lab")
    first = template(server, One=demo(stacks, "one", GOOD))
    assert stacks.deploy("create", "one", first) == "CREATE_COMPLETE", stacks.events("one")
    assert server.ask(CONFIG_MAP)["data"] == {"a": "b"}

    second = template(server, One=demo(stacks, "one", GOOD.replace("a: b", "a: c")))
    assert stacks.deploy("update", "one", second) == "UPDATE_COMPLETE", stacks.events("one")
    assert server.ask(CONFIG_MAP)["data"] == {"a": "c"}

    assert stacks.delete("one") == "DELETE_COMPLETE"
    assert server.ask(CONFIG_MAP) is None
    assert "one" not in releases_of(server)


@pytest.mark.parametrize("wait", ["true", "false"])
def test_a_chart_that_fails_half_way_is_taken_back_and_the_stack_says_which_and_why(
    stacks: Stacks, server: ApiServer, wait: str
) -> None:
    stacks.real_cluster("lab")
    name = f"half-{wait}"

    assert (
        stacks.deploy("create", name, template(server, Half=demo(stacks, name, GOOD, REFUSED, Wait=wait)))
        == "ROLLBACK_COMPLETE"
    )

    why = stacks.events(name)["Half CREATE_FAILED"]
    assert f"kube-system/{name}: helm upgrade {name} failed" in why
    assert "10.9.9.9" in why
    assert server.ask(CONFIG_MAP) is None
    assert name not in releases_of(server)


def test_what_this_version_of_kubernetes_does_not_know_is_refused_before_anything_is_made(
    stacks: Stacks, server: ApiServer
) -> None:
    stacks.real_cluster("lab")

    assert (
        stacks.deploy("create", "new", template(server, New=demo(stacks, "new", GOOD, UNKNOWN))) == "ROLLBACK_COMPLETE"
    )

    assert (
        'no matches for kind "HorizontalPodAutoscaler" in version "autoscaling/v2"'
        in stacks.events("new")["New CREATE_FAILED"]
    )
    assert server.ask(CONFIG_MAP) is None


@needs_charts
def test_all_pinned_charts_are_installed_with_our_values(stacks: Stacks, server: ApiServer) -> None:
    stacks.real_cluster("lab")
    file_system: Any = SimpleNamespace(file_system_id="fs-1", dns_name="fs-1.fsx", mount_name="abc")
    volume = volume_values(file_system, capacity_gib=1200, namespace="default", claim="lustre")
    values = {**chart_values(None, region="us-west-2"), "storage": volume}
    made = {}
    # As our construct has them: the chart that makes the namespace aws-hyperpod is the first.
    for number, (name, chart) in enumerate(charts().items()):
        key = f"charts/{chart.repository.replace('/', '+')}-{chart.commit}.tar.gz"
        stacks.put(key, (ARCHIVES / key.removeprefix("charts/")).read_bytes())
        place = {"Bucket": BUCKET, "Key": key}
        one = release(name, archive=place, path=chart.path, digest=chart.tree_sha256, Values=json.dumps(values[name]))
        made[f"Chart{number}"] = {**one, **({"DependsOn": ["Chart0"]} if number else {})}

    assert stacks.deploy("create", "pinned", template(server, **made)) == "CREATE_COMPLETE", stacks.events("pinned")

    assert releases_of(server) >= set(charts())
    (volume,) = server.ask("/api/v1/persistentvolumes")["items"]
    assert volume["spec"]["csi"]["volumeAttributes"] == {"dnsname": "fs-1.fsx", "mountname": "abc"}
    daemons = {
        one["metadata"]["name"] for one in server.ask("/apis/apps/v1/namespaces/kube-system/daemonsets")["items"]
    }
    assert "nvidia-device-plugin" in daemons
    assert stacks.delete("pinned") == "DELETE_COMPLETE"
    assert not releases_of(server) & set(charts())


@pytest.mark.parametrize("name", ["aws-fsx-csi-driver", "coredns", "kube-proxy", "vpc-cni"])
def test_the_objects_of_add_ons_are_taken_by_this_version_of_kubernetes(server: ApiServer, name: str) -> None:
    made = objects(name, Facts(region="us-west-2", version="v1.12.2-eksbuild.4", services="172.20.0.0/16"))

    install(server, made, resolve_conflicts="NONE")
    install(server, made, resolve_conflicts="NONE")  # nothing conflicts with itself
    assert is_well(server, made) is not bool(workloads(made))  # nobody runs pods here

    remove(server, made)
    remove(server, made)  # what is gone is no error


def test_what_a_user_has_changed_is_a_conflict(server: ApiServer) -> None:
    made = objects("coredns", Facts(region="us-west-2", version="v1.12.2-eksbuild.4", services="172.20.0.0/16"))
    theirs = {**made[3], "data": {"Corefile": "mine"}}
    assert theirs["kind"] == "ConfigMap"
    server.apply("/api/v1/namespaces/kube-system/configmaps/coredns", theirs, manager="kubectl")

    with pytest.raises(ConflictError, match=r"ConfigMap coredns$"):
        install(server, made, resolve_conflicts="NONE")

    install(server, made, resolve_conflicts="OVERWRITE")
    assert ".:53" in server.ask("/api/v1/namespaces/kube-system/configmaps/coredns")["data"]["Corefile"]
    remove(server, made)


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return helm_program(tmp_path_factory.mktemp("layer"))


@pytest.mark.parametrize("row", NOT_TAKEN, ids=[row["what"] for row in NOT_TAKEN])
def test_what_the_table_lists_is_refused_with_these_words(
    server: ApiServer, helm: Path, tmp_path: Path, row: dict[str, str]
) -> None:
    if not server.ask("/version")["gitVersion"].startswith("v1.20."):
        pytest.skip("the table is of 1.20")
    cluster = Cluster(name="lab", endpoint=server.endpoint, certificate_authority=server.certificate_authority)
    write_kubeconfig(tmp_path / "kubeconfig", cluster=cluster, token=server.token)
    (tmp_path / "chart" / "templates").mkdir(parents=True)
    (tmp_path / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 1.0.0\n")
    (tmp_path / "chart" / "templates" / "it.yaml").write_text(row["manifest"])

    name = f"row-{NOT_TAKEN.index(row)}"
    arguments = ["upgrade", name, tmp_path / "chart", "--install", "--namespace=kube-system", "--timeout=20s"]
    environment = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "HOME": str(tmp_path), "PATH": os.defpath}
    done = subprocess.run([helm, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode != 0
    assert row["error"] in done.stderr
