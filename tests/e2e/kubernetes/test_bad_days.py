"""Bad days of a local EKS: pods that do not go, more pods than there is room for, a full disk, another orchestrator."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_http import Api
from kubernetes_things import deployment, pod, pods_path, ready_nodes, wait_phase
from local_eks import LocalEks, eventually_true

from holdfast.localcloud.kubernetes import Binaries, EksCluster
from holdfast.localcloud.kubernetes.control import ControlPlane
from holdfast.localcloud.nodes import Fleet
from holdfast_common import KubernetesError

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

DEAF = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
GRACE_S = 3
MANY = 110
DISK_MIB = 250
LARGE_KIB = 900
MAPS = "/api/v1/namespaces/default/configmaps"


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
def on_a_small_disk(tmp_path: Path, binaries: Binaries) -> Iterator[tuple[ControlPlane, Path]]:
    """A control plane whose data lies on a small disk, and the place of that disk."""
    disk, home = tmp_path / "disk", tmp_path / "home"
    disk.mkdir()
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=700", "small", str(disk)], check=True)
    fleet = Fleet(home=home)
    try:
        fleet.open(network="10.1.0.0/16", gateway="10.1.0.1")
        cluster = EksCluster(
            arn="arn:aws:eks:us-west-2:123456789012:cluster/small",
            name="small",
            status="CREATING",
            version="1.34",
            endpoint="",
            services="172.20.0.0/16",
            issuer="https://oidc.eks.us-west-2.amazonaws.com/id/SMALL",
        )
        plane = ControlPlane(cluster, directory=disk / "cluster", fleet=fleet, binaries=binaries, network="10.1.0.0/16")
        plane.start(on_boot=lambda _: None, is_over=lambda: False)
        yield plane, disk
        plane.destroy()
    finally:
        fleet.close()
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_what_etcd_has_acknowledged_survives_a_full_disk(on_a_small_disk: tuple[ControlPlane, Path]):
    plane, disk = on_a_small_disk
    acknowledged: list[str] = []

    def write(name: str, *, kib: int) -> bool:
        try:
            plane.api.create(MAPS, {"metadata": {"name": name}, "data": {"x": name[0] * (kib << 10)}})
        except KubernetesError:
            return False
        acknowledged.append(name)
        return True

    assert write("first", kib=LARGE_KIB)
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"\0" * (1 << 20))
    # The log's present file has its room already, so that some writes still fit.
    tried = iter(write(f"large-{number}", kib=LARGE_KIB) for number in range(2 * DISK_MIB))
    assert not all(tried), "the disk was full, and nobody minded"
    filler.unlink()
    eventually_true(lambda: write(f"after-{time.time_ns()}", kib=1), "writes once more", within_s=90)
    listed = plane.api.get(f"{MAPS}?limit=500")["items"]
    assert set(acknowledged) <= {one["metadata"]["name"] for one in listed}
