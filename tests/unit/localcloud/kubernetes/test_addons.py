"""What add-ons of EKS bring into a cluster, how that is applied, and when it is well."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.localcloud.kubernetes.addons import (
    ConflictError,
    Facts,
    images,
    install,
    is_well,
    objects,
    release_objects,
    remove,
    stand_in,
)
from holdfast_common import KubernetesError

FACTS = Facts(region="us-west-2", version="v1.12.2-eksbuild.4", services="172.20.0.0/16")
STAND_INS = ("aws-fsx-csi-driver", "coredns", "eks-pod-identity-agent", "kube-proxy", "vpc-cni")


class Server:
    """An API server that keeps what is applied, and knows who set what."""

    def __init__(self, *, owned: frozenset[str] = frozenset(), refused: str = "") -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.owned, self.refused, self.deleted = owned, refused, list[str]()

    def get(self, path: str) -> dict[str, Any]:
        if path not in self.kept:
            raise KubernetesError(404, "not found")
        return self.kept[path]

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = False) -> dict[str, Any]:
        name = body["metadata"]["name"]
        if name == self.refused:
            raise KubernetesError(422, f"{name} is invalid")
        if name in self.owned and not force:
            raise KubernetesError(409, "Apply failed with 1 conflict")
        self.kept[path] = {**body, "metadata": {**body["metadata"], "generation": 1, "managedBy": manager}}
        return self.kept[path]

    def delete(self, path: str) -> None:
        self.kept.pop(path, None)
        self.deleted.append(path)


def by_kind(name: str) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in objects(name, FACTS)}


@pytest.mark.parametrize("name", STAND_INS)
def test_what_stands_in_is_said(name: str) -> None:
    assert re.search(r"[a-z]", stand_in(name))


def test_an_add_on_without_a_stand_in_brings_nothing() -> None:
    assert stand_in("metrics-server") == ""
    assert objects("metrics-server", FACTS) == []


def test_the_name_server_has_the_tenth_address_of_the_services() -> None:
    service = by_kind("coredns")["Service"]

    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == ("kube-dns", "172.20.0.10")
    assert by_kind("coredns")["Deployment"]["spec"]["replicas"] == 2


def test_images_are_those_of_the_region_and_the_add_on() -> None:
    assert images("coredns", FACTS) == ["602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/coredns:v1.12.2-eksbuild.4"]
    assert images("aws-fsx-csi-driver", FACTS) == [
        "public.ecr.aws/fsx-csi-driver/aws-fsx-csi-driver:v1.12.2-eksbuild.4"
    ]


@pytest.mark.parametrize("name", ["eks-pod-identity-agent", "kube-proxy", "vpc-cni"])
def test_what_the_nodes_do_themselves_costs_no_pod(name: str) -> None:
    assert images(name, FACTS) == []


def test_the_driver_of_file_systems_is_on_every_node_whatever_its_taints() -> None:
    pod = by_kind("aws-fsx-csi-driver")["DaemonSet"]["spec"]["template"]["spec"]

    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert by_kind("aws-fsx-csi-driver")["CSIDriver"]["metadata"]["name"] == "fsx.csi.aws.com"
    assert "--endpoint=$(CSI_ENDPOINT)" in pod["containers"][0]["args"]


@pytest.mark.parametrize("name", STAND_INS)
def test_ports_say_their_protocol(name: str) -> None:
    """Kubernetes 1.20 refuses an applied port without one."""
    for one in objects(name, FACTS):
        containers = one.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
        ports = [
            *one.get("spec", {}).get("ports", []),
            *(port for each in containers for port in each.get("ports", [])),
        ]
        assert [port for port in ports if "protocol" not in port] == []


def test_an_add_on_is_well_when_every_pod_is_available() -> None:
    server, made = Server(), objects("coredns", FACTS)
    install(server, made, resolve_conflicts="NONE")
    (path,) = [path for path in server.kept if path.endswith("/deployments/coredns")]
    assert path == "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
    assert not is_well(server, made)

    server.kept[path]["status"] = {"observedGeneration": 1, "availableReplicas": 1}
    assert not is_well(server, made)
    server.kept[path]["status"] = {"observedGeneration": 1, "availableReplicas": 2}
    assert is_well(server, made)
    server.kept[path]["metadata"]["generation"] = 2  # an update that no controller has seen
    assert not is_well(server, made)
    server.delete(path)
    assert not is_well(server, made)


def test_a_daemon_set_without_nodes_wants_no_pod() -> None:
    server, made = Server(), objects("aws-fsx-csi-driver", FACTS)
    install(server, made, resolve_conflicts="NONE")
    (path,) = [path for path in server.kept if "daemonsets" in path]
    server.kept[path]["status"] = {"observedGeneration": 1, "desiredNumberScheduled": 0}
    assert is_well(server, made)

    server.kept[path]["status"] = {"observedGeneration": 1, "desiredNumberScheduled": 6, "numberAvailable": 5}
    assert not is_well(server, made)


def test_what_others_have_set_is_a_conflict_that_only_overwrite_and_preserve_get_over() -> None:
    made = objects("coredns", FACTS)
    with pytest.raises(
        ConflictError, match=r"Conflicts:\nServiceAccount coredns\nConfigMap coredns\nDeployment coredns$"
    ):
        install(Server(owned=frozenset({"coredns"})), made, resolve_conflicts="NONE")

    for way in ("OVERWRITE", "PRESERVE"):
        install(Server(owned=frozenset({"coredns"})), made, resolve_conflicts=way)


def test_what_kubernetes_refuses_is_raised() -> None:
    with pytest.raises(KubernetesError, match="kube-dns is invalid"):
        install(Server(refused="kube-dns"), objects("coredns", FACTS), resolve_conflicts="OVERWRITE")


def test_what_was_made_last_goes_first() -> None:
    server, made = Server(), objects("coredns", FACTS)
    install(server, made, resolve_conflicts="NONE")
    remove(server, made)

    assert server.kept == {}
    assert server.deleted[0].endswith("/deployments/coredns")


STORAGE = {
    "persistentVolume": {
        "name": "lustre-default",
        "capacity": "1200Gi",
        "csi": {"volumeHandle": "fs-1", "volumeAttributes": {"dnsname": "fs-1.fsx", "mountname": "abc"}},
    },
    "persistentVolumeClaim": {"name": "lustre", "requests": {"storage": "1200Gi"}},
}


def test_a_volume_takes_the_place_of_the_chart_that_makes_it() -> None:
    volume, claim = release_objects("storage", namespace="default", values=STORAGE)
    assert volume["spec"]["csi"]["volumeAttributes"] == {"dnsname": "fs-1.fsx", "mountname": "abc"}
    assert claim["metadata"] == {"name": "lustre", "namespace": "default"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


def test_a_value_never_becomes_a_part_of_the_manifest() -> None:
    names = {**STORAGE["persistentVolume"], "name": 'x"}\n---\nkind: Secret'}
    volume, claim = release_objects("storage", namespace="default", values={**STORAGE, "persistentVolume": names})
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == names["name"]


def test_a_missing_value_is_named() -> None:
    with pytest.raises(KeyError, match="persistentVolume"):
        release_objects("storage", namespace="default", values={})


@pytest.mark.parametrize(
    ("name", "goes_to", "not_to"),
    [
        ("nvidia-device-plugin", "ml.p5.48xlarge", "ml.trn1.32xlarge"),
        ("aws-efa-k8s-device-plugin", "ml.p5.48xlarge", "ml.m5.4xlarge"),
        ("neuron-device-plugin", "ml.trn1.32xlarge", "ml.p5.48xlarge"),
    ],
)
def test_devices_are_offered_on_the_types_that_have_them(name: str, goes_to: str, not_to: str) -> None:
    (made,) = release_objects(name, namespace="kube-system", values={})
    affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (row,) = term["matchExpressions"]
    assert goes_to in row["values"]
    assert not_to not in row["values"]


def test_nothing_takes_the_place_of_charts_that_only_give_permissions() -> None:
    assert release_objects("deep-health-check", namespace="aws-hyperpod", values={}) == []
