"""AWS's own command line for HyperPod, `hyp` of sagemaker-hyperpod 3.12.0, unmodified, against a local EKS.

What it has to print is said by its source: sagemaker/hyperpod/cli/commands/cluster.py and training.py,
observability/utils.py, training/hyperpod_pytorch_job.py (read 2026-11-23). It sends telemetry with most commands and
has no switch for it; here there is no way out, and it goes on.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_http import Api
from kubernetes_things import STAYS, pod, pods_path, wait_ready
from local_eks import LocalEks, Person, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

DEFINITION = Path(__file__).parents[2] / "cases" / "clients" / "hyperpodpytorchjobs.yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES, GPU = "/api/v1/nodes", "nvidia.com/gpu"
JOBS = "/apis/sagemaker.amazonaws.com/v1/namespaces/{}/hyperpodpytorchjobs"


@pytest.fixture(scope="module", autouse=True)
def gpus(api: Api) -> Iterator[None]:
    """
    Nodes with GPUs, also where NVIDIA's device plugin is not installed.

    `hyp` takes a node of a GPU type without any for an error, and leaves the cluster out (cluster.py).
    """
    lacking = [node["metadata"]["name"] for node in api.get(NODES)["items"] if GPU not in node["status"]["allocatable"]]
    for name in lacking:
        api.patch(f"{NODES}/{name}/status", {"status": {"capacity": {GPU: "8"}}})
    eventually_true(
        lambda: all(GPU in node["status"]["allocatable"] for node in api.get(NODES)["items"]), "GPUs", within_s=90
    )
    yield
    for name in lacking:
        api.patch(f"{NODES}/{name}/status", {"status": {"capacity": {GPU: None}}})


@pytest.fixture(scope="module")
def user(local_eks: LocalEks, person: Callable[[str], Person]) -> Person:
    """An administrator whom `hyp` has connected to the cluster."""
    one = person(local_eks.admin_role)
    done = one.tried("hyp", "set-cluster-context", "--cluster-name", local_eks.hyperpod_cluster)
    assert done.returncode == 0, done.stderr
    return one


@pytest.fixture
def jobs(api: Api) -> Iterator[None]:
    """The kind of `hyp-pytorch-job`: the operator's where it is installed, else a small one of this folder."""
    made = yaml.safe_load(DEFINITION.read_text())
    there = api.find(f"{DEFINITIONS}/{made['metadata']['name']}")
    if not there:
        api.post(DEFINITIONS, made)
    eventually_true(lambda: api.find(JOBS.format("default")), "the kind")
    yield
    if not there:
        api.delete(f"{DEFINITIONS}/{made['metadata']['name']}")


def test_the_context_is_that_of_the_eks_cluster(local_eks: LocalEks, user: Person) -> None:
    arn = local_eks.aws("eks").describe_cluster(name=local_eks.eks_cluster)["cluster"]["arn"]

    assert user.run("hyp", "get-cluster-context") == f"Cluster context:{arn}\n"
    assert user.kubectl("config", "current-context") == f"{arn}\n"


def test_clusters_are_listed_with_what_their_nodes_have_free(local_eks: LocalEks, user: Person, api: Api) -> None:
    nodes = api.get("/api/v1/nodes", labelSelector="sagemaker.amazonaws.com/cluster-name")["items"]
    types: dict[str, list[Any]] = {}
    for node in nodes:
        types.setdefault(node["metadata"]["labels"]["node.kubernetes.io/instance-type"], []).append(node)

    listed = json.loads(user.run("hyp", "list-cluster"))
    table = user.run("hyp", "list-cluster", "--output", "table")

    [found] = [one for one in listed if one["Cluster"] == local_eks.hyperpod_cluster]
    assert {one["InstanceType"]: one["TotalNodes"] for one in found["Instances"]} == {
        name: len(those) for name, those in types.items()
    }
    for one in found["Instances"]:
        labels = [node["metadata"]["labels"] for node in types[one["InstanceType"]]]
        health = [each["sagemaker.amazonaws.com/node-health-status"] for each in labels]
        assert one["NodeHealthStatus=Schedulable"] == health.count("Schedulable")
        accelerated = one["InstanceType"].startswith(("ml.g", "ml.p", "ml.trn"))
        assert (one["AcceleratorDevicesAvailable"] == "N/A") is not accelerated
    assert [word.strip() for word in table.splitlines()[0].split("|")] == [
        *("Cluster", "InstanceType", "TotalNodes", "AcceleratorDevicesAvailable"),
        *("NodeHealthStatus=Schedulable", "DeepHealthCheckStatus=Passed"),
    ]
    assert local_eks.hyperpod_cluster in table


def test_devices_in_use_are_not_counted_as_free(local_eks: LocalEks, user: Person, api: Api, namespace: str) -> None:
    def free() -> int:
        [found] = [
            one for one in json.loads(user.run("hyp", "list-cluster")) if one["Cluster"] == local_eks.hyperpod_cluster
        ]
        counts = [one["AcceleratorDevicesAvailable"] for one in found["Instances"]]
        return sum(count for count in counts if count != "N/A")

    before = free()
    limits = {"resources": {"limits": {"nvidia.com/gpu": "3"}}}
    # list_pods.py counts pods of Kubeflow's training operator, by their label
    job = {"training.kubeflow.org/job-name": "takes"}
    api.post(pods_path(namespace), pod("takes", image=local_eks.image, labels=job, container=limits))
    wait_ready(api, namespace, "takes")

    assert free() == before - 3


def test_a_cluster_is_described(local_eks: LocalEks, user: Person) -> None:
    told = user.run("hyp", "describe", "cluster", local_eks.hyperpod_cluster)
    nobody = user.tried("hyp", "describe", "cluster", "nobody")

    assert f"Cluster Details for: {local_eks.hyperpod_cluster}\nStatus: InService\n" in told
    assert nobody.returncode == 1
    assert "Cluster 'nobody' not found" in nobody.stdout


def test_monitoring_is_told_as_not_enabled_without_the_addon(local_eks: LocalEks, user: Person) -> None:
    addons = local_eks.aws("eks").list_addons(clusterName=local_eks.eks_cluster)["addons"]
    if "amazon-sagemaker-hyperpod-observability" in addons:
        pytest.skip("the observability add-on is installed")
    done = user.tried("hyp", "get-monitoring", "--list")

    assert (done.returncode, done.stdout) == (1, "Observability addon is not enabled for this cluster\n")


def test_one_without_an_access_entry_is_told_so(local_eks: LocalEks, person: Callable[[str], Person]) -> None:
    done = person(local_eks.other_role).tried(
        "hyp", "set-cluster-context", "--cluster-name", local_eks.hyperpod_cluster
    )

    assert done.returncode == 1
    assert f"Cannot connect to EKS cluster '{local_eks.eks_cluster}'" in done.stderr + done.stdout
    assert f"No access entry found for principal: {local_eks.other_role}" in done.stderr + done.stdout


def test_a_job_is_created_listed_described_read_entered_and_deleted(
    local_eks: LocalEks, user: Person, api: Api, namespace: str, jobs: None
) -> None:
    """The operator's part, pods and conditions, is played by the test where there is no operator."""
    named = ("--job-name", "small", "--namespace", namespace)
    created = user.tried(
        *("hyp", "create", "hyp-pytorch-job", *named, "--image", local_eks.image),
        *("--command", "[sh,-c,sleep 60]", "--node-count", "1", "--tasks-per-node", "1"),
    )
    assert created.returncode == 0, created.stderr
    job = api.get(f"{JOBS.format(namespace)}/small")
    assert job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["image"] == local_eks.image

    play_operator(api, namespace, job, image=local_eks.image)
    listed = user.run("hyp", "list", "hyp-pytorch-job", "--namespace", namespace)
    described = user.run("hyp", "describe", "hyp-pytorch-job", *named)
    pods = user.run("hyp", "list-pods", "hyp-pytorch-job", *named)
    logs = user.run("hyp", "get-logs", "hyp-pytorch-job", *named, "--pod-name", "small-pod-0")
    entered = user.run("hyp", "exec", "hyp-pytorch-job", *named, "--pod", "small-pod-0", "--", "echo", "inside")
    user.run("hyp", "delete", "hyp-pytorch-job", *named)

    assert [line.split()[:3] for line in listed.splitlines() if line.startswith("small")] == [
        ["small", namespace, "Running"]
    ]
    assert "Name:           small" in described
    assert "Type:               Running" in described
    assert "small-pod-0" in pods
    assert "told by the pod" in logs
    assert "inside" in entered
    eventually_true(lambda: api.find(f"{JOBS.format(namespace)}/small") is None, "its end")
    # The garbage collector looks for new kinds every 30 s.
    eventually_true(lambda: api.find(pods_path(namespace, "small-pod-0")) is None, "its pod's end", within_s=150)


def play_operator(api: Api, namespace: str, job: Any, *, image: str) -> None:
    owner = {
        **{key: job[key] for key in ("apiVersion", "kind")},
        **{key: job["metadata"][key] for key in ("name", "uid")},
        "controller": True,
    }
    talks = [*STAYS[:2], f"echo told by the pod; {STAYS[2]}"]
    made = pod("small-pod-0", image=image, command=talks, labels={"HPJob": "small"})
    made["metadata"]["ownerReferences"] = [owner]
    made["spec"]["containers"][0]["name"] = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["name"]
    api.post(pods_path(namespace), made)
    wait_ready(api, namespace, "small-pod-0")
    moment = job["metadata"]["creationTimestamp"]
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": kind, "lastTransitionTime": moment}
        for kind in ("Created", "Running")
    ]
    api.patch(f"{JOBS.format(namespace)}/small/status", {"status": {"conditions": conditions}})
