"""Node objects, pods and ListClusterNodes agree at every moment that a client can see, whatever becomes of instances.

What has to come about is said by the SageMaker developer guide: "Manually quarantine, replace, or reboot a node",
"Resilience-related Kubernetes labels by SageMaker HyperPod", BatchDeleteClusterNodes and UpdateCluster (2026-11).
"""

import copy
import time
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_agreement import HEALTH, Node, disagreements, instances, nodes, summary, watching
from kubernetes_http import MERGE, Api
from kubernetes_things import deployment
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root, pytest.mark.timeout(1200)]

SETTLES_WITHIN_S = 180.0
LOOK_ON_S = 3.0
"""What was settled has to stay so."""
KEPT = (
    "InstanceGroupName",
    "InstanceType",
    "InstanceRequirements",
    "ExecutionRole",
    "LifeCycleConfig",
    "ThreadsPerCore",
)
"""Members of an instance group that UpdateCluster takes as DescribeCluster tells them."""


class Instances:
    """The instances of the HyperPod cluster, and what is done to them."""

    def __init__(self, api: Api, eks: LocalEks) -> None:
        self.api, self.cluster, self.sagemaker = api, eks.hyperpod_cluster, eks.aws("sagemaker")

    def now(self) -> dict[str, str]:
        return instances(self.sagemaker, self.cluster)

    def nodes(self) -> dict[str, Node]:
        return {one.name: one for one in nodes(self.api)}

    def settled(self, count: int) -> bool:
        """So many instances run, each with a Ready Node that takes pods, and there is no other Node."""
        status = self.sagemaker.describe_cluster(ClusterName=self.cluster)["ClusterStatus"]
        ready = [one.instance for one in nodes(self.api) if one.ready and one.health == "Schedulable"]
        now = self.now()
        return bool(
            status == "InService"
            and len(now) == count
            and set(now.values()) == {"Running"}
            and sorted(ready) == sorted(now)
            and len(self.nodes()) == count
        )

    def label(self, node: str, value: str) -> None:
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {HEALTH: value}}}, kind=MERGE)

    def scale(self, count: int) -> None:
        """UpdateCluster, with everything else as it is."""
        told = self.sagemaker.describe_cluster(ClusterName=self.cluster)["InstanceGroups"]
        groups: list[dict[str, Any]] = []
        for group in told:
            kept = {key: copy.deepcopy(group[key]) for key in KEPT if key in group}
            groups.append({**kept, "InstanceCount": group.get("TargetCount", group["CurrentCount"])})
        groups[-1]["InstanceCount"] += count - len(self.now())
        self.sagemaker.update_cluster(ClusterName=self.cluster, InstanceGroups=groups)


@pytest.fixture
def cluster(api: Api, local_eks: LocalEks) -> Instances:
    found = Instances(api, local_eks)
    count = len(found.now())
    eventually_true(lambda: found.settled(count), "a settled cluster", within_s=SETTLES_WITHIN_S)
    return found


@pytest.fixture
def working(api: Api, local_eks: LocalEks, namespace: str, cluster: Instances) -> str:
    """A namespace with pods on all nodes."""
    count = 2 * len(cluster.now())
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(path, deployment("work", image=local_eks.image, replicas=count))
    eventually_true(lambda: api.get(f"{path}/work").get("status", {}).get("readyReplicas") == count, "pods")
    return namespace


def works_again(api: Api, namespace: str) -> bool:
    status = api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/work")["status"]
    return bool(status.get("readyReplicas") == status["replicas"] and not status.get("unavailableReplicas"))


@pytest.fixture
def agreed(api: Api, cluster: Instances, working: str) -> Callable[..., str]:
    """Do something to instances, wait until it came about, and hold everything that was seen meanwhile to account."""

    def done(act: Callable[[], None], came_about: Callable[[], bool], *, least: int, most: int) -> str:
        with watching(api, cluster.sagemaker, cluster.cluster, working) as observed:
            eventually_true(lambda: len(observed.samples) > 3, "the first samples")
            act()
            eventually_true(came_about, "what was asked for", within_s=SETTLES_WITHIN_S)
            eventually_true(lambda: works_again(api, working), "the pods elsewhere", within_s=SETTLES_WITHIN_S)
            time.sleep(LOOK_ON_S)
        assert observed.failed == 0
        assert disagreements(observed.samples, least=least, most=most) == []
        told = summary(observed.samples)
        print(told)
        return told

    return done


def test_a_node_that_is_labelled_for_replacement_is_replaced_under_a_new_name(
    cluster: Instances, agreed: Callable[..., str]
) -> None:
    before = cluster.nodes()
    count, victim = len(before), sorted(before)[0]
    agreed(
        lambda: cluster.label(victim, "UnschedulablePendingReplacement"),
        lambda: victim not in cluster.nodes() and cluster.settled(count),
        least=count - 1,
        most=count + 1,
    )

    after = cluster.nodes()
    assert len(after.keys() - before.keys()) == 1
    assert before.keys() - after.keys() == {victim}


def test_a_node_that_is_labelled_for_a_reboot_comes_back_under_its_name(
    api: Api, cluster: Instances, agreed: Callable[..., str]
) -> None:
    before = cluster.nodes()
    count, victim = len(before), sorted(before)[0]
    booted = boot_id(api, victim)
    agreed(
        lambda: cluster.label(victim, "UnschedulablePendingReboot"),
        lambda: boot_id(api, victim) != booted and cluster.settled(count),
        least=count,
        most=count,
    )

    assert cluster.nodes().keys() == before.keys()


def test_an_instance_that_is_deleted_takes_its_node_with_it(cluster: Instances, agreed: Callable[..., str]) -> None:
    before = cluster.nodes()
    count, victim = len(before), sorted(before.values(), key=lambda one: one.name)[0]
    try:
        agreed(
            lambda: cluster.sagemaker.batch_delete_cluster_nodes(
                ClusterName=cluster.cluster, NodeIds=[victim.instance]
            ),
            lambda: cluster.settled(count - 1),
            least=count - 1,
            most=count,
        )
        assert cluster.nodes().keys() == before.keys() - {victim.name}
    finally:
        cluster.scale(count)
        eventually_true(lambda: cluster.settled(count), "the instance that was taken", within_s=SETTLES_WITHIN_S)


def test_a_cluster_grows_and_shrinks(cluster: Instances, agreed: Callable[..., str]) -> None:
    before = cluster.nodes()
    count = len(before)
    agreed(lambda: cluster.scale(count + 2), lambda: cluster.settled(count + 2), least=count, most=count + 2)
    grown = cluster.nodes()
    agreed(lambda: cluster.scale(count), lambda: cluster.settled(count), least=count, most=count + 2)

    assert before.keys() < grown.keys()
    assert cluster.nodes().keys() < grown.keys()


def boot_id(api: Api, node: str) -> str:
    found = api.find(f"/api/v1/nodes/{node}") or {"status": {"nodeInfo": {"bootID": ""}}}
    return str(found["status"]["nodeInfo"]["bootID"])
