"""Bad days of a local EKS: pods that do not go, more pods than there is room for, a full disk, another orchestrator."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_http import Api
from kubernetes_things import deployment, pod, pods_path, ready_nodes, wait_phase
from local_eks import LocalEks, eventually_true
from local_eks_lab import running_eks

from holdfast.localcloud.kubernetes import Binaries
from holdfast.localcloud.kubernetes.api import Api as OwnApi
from holdfast.localcloud.kubernetes.api import ApiError
from holdfast.localcloud.kubernetes.control import administrator
from holdfast.localcloud.nodes import Fleet

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
GRACE_S = 3
MANY = 110
DISK_MIB = 200
LARGE_KIB = 900


def test_a_pod_that_ignores_sigterm_is_ended_after_its_grace_period(api: Api, namespace: str, local_eks: LocalEks):
    api.post(
        pods_path(namespace),
        pod("deaf", image=local_eks.image, command=DEAF, terminationGracePeriodSeconds=GRACE_S),
    )
    wait_phase(api, namespace, "deaf", "Running")
    began = time.monotonic()
    api.delete(pods_path(namespace, "deaf"))
    eventually_true(lambda: api.find(pods_path(namespace, "deaf")) is None, "its end", within_s=30)
    assert time.monotonic() - began >= GRACE_S


def test_a_node_takes_as_many_pods_as_it_says_and_the_rest_wait(api: Api, namespace: str, local_eks: LocalEks):
    name = ready_nodes(api)[0]
    room = int(api.get(f"/api/v1/nodes/{name}")["status"]["allocatable"]["pods"])
    wanted = deployment("many", image=local_eks.image, replicas=MANY)
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}
    api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", wanted)

    def on_it() -> list[Any]:
        listed = api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]
        return [one for one in listed if one["status"]["phase"] == "Running"]

    eventually_true(lambda: len(on_it()) == room, f"{room} pods on {name}", within_s=240)
    listed = api.get(pods_path(namespace))["items"]
    waiting = [one for one in listed if one["status"]["phase"] == "Pending"]
    assert len(listed) == MANY
    assert len(waiting) >= MANY - room
    said = [condition["message"] for one in waiting for condition in one["status"].get("conditions", ())]
    assert any("Too many pods" in message for message in said), said[:2]
    assert name in ready_nodes(api)
    api.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/many", {"propagationPolicy": "Background"})
    eventually_true(lambda: not api.get(pods_path(namespace))["items"], "their end", within_s=240)


def test_slurm_runs_beside_kubernetes_in_one_home(api: Api, local_eks: LocalEks):
    sagemaker, ec2 = local_eks.aws("sagemaker"), local_eks.aws("ec2")
    described = sagemaker.describe_cluster(ClusterName=local_eks.hyperpod_cluster)
    role = described["InstanceGroups"][0]["ExecutionRole"]
    groups = [
        {
            "InstanceGroupName": name,
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            "ExecutionRole": role,
            "SlurmConfig": slurm,
        }
        for name, slurm in (
            ("head", {"NodeType": "Controller"}),
            ("work", {"NodeType": "Compute", "PartitionNames": ["dev"]}),
        )
    ]
    before = set(ready_nodes(api))
    sagemaker.create_cluster(
        ClusterName="beside",
        InstanceGroups=groups,
        VpcConfig=described["VpcConfig"],
        Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
    )
    try:

        def status() -> str:
            told = sagemaker.describe_cluster(ClusterName="beside")
            assert told["ClusterStatus"] != "Failed", told.get("FailureMessage")
            return str(told["ClusterStatus"])

        eventually_true(lambda: status() == "InService", "a cluster under Slurm", within_s=240)
        listed = sagemaker.list_cluster_nodes(ClusterName="beside")["ClusterNodeSummaries"]
        head = next(one["InstanceId"] for one in listed if one["InstanceGroupName"] == "head")
        done = Fleet(home=local_eks.home).node(head).run(["srun", "-N1", "hostname"], timeout_s=60)
        assert done.stdout.startswith("ip-10-1-"), done.stderr
        assert set(ready_nodes(api)) == before
        assert ec2.describe_vpcs()["Vpcs"]
    finally:
        sagemaker.delete_cluster(ClusterName="beside")
        eventually_true(
            lambda: "beside" not in [one["ClusterName"] for one in sagemaker.list_clusters()["ClusterSummaries"]],
            "its end",
            within_s=120,
        )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A home whose clusters have a small disk."""
    home = tmp_path / "home"
    place = home / "kubernetes"
    place.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / ".holdfast-home").write_text(json.dumps({"holdfast": "0"}) + "\n")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=700", "small", str(place)], check=True)
    yield home
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_what_etcd_has_acknowledged_survives_a_full_disk(small_disk: Path, binaries: Binaries):
    with running_eks(small_disk, binaries=lambda: binaries, nodes=1) as made:
        described = made.aws("eks").describe_cluster(name=made.eks_cluster)["cluster"]
        api = administrator(made.home / "kubernetes", described)
        assert api is not None
        path, acknowledged = "/api/v1/namespaces/default/configmaps", []

        def write(number: int) -> None:
            name = f"large-{number}"
            api.create(path, {"metadata": {"name": name}, "data": {"x": f"{number:04}" * (LARGE_KIB * 256)}})
            acknowledged.append(name)

        write(0)
        filler = small_disk / "kubernetes" / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * (1 << 20))
        refused = 0
        for number in range(1, DISK_MIB):
            try:
                write(number)
            except (ApiError, OSError):
                refused += 1
            if refused == 3:
                break
        assert refused == 3, "the disk was full, and nobody minded"
        filler.unlink()
        eventually_true(lambda: _written(api, path, acknowledged), "writes once more", within_s=60)
        there = {one["metadata"]["name"] for one in api.get(f"{path}?limit=500")["items"]}
        assert set(acknowledged) <= there


def _written(api: OwnApi, path: str, acknowledged: list[str]) -> bool:
    name = f"after-{time.time_ns()}"
    try:
        api.create(path, {"metadata": {"name": name}})
    except (ApiError, OSError):
        return False
    acknowledged.append(name)
    return True
