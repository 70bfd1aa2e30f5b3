"""What needs nodes on EKS waits for them, also where the cluster is in service before it has one."""

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from holdfast_constructs import (
    EksOrchestrator,
    HyperPodCluster,
    HyperPodEks,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    TrainingOperator,
)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Any:
    script = tmp_path_factory.mktemp("scripts") / "on_create.sh"
    script.write_text("#!/bin/bash\n")

    def made(*, continuous: bool, count: int = 2, install: bool = True) -> dict[str, Any]:
        stack = cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))
        groups = [InstanceGroup(name="system", instance_type="ml.m5.4xlarge", instance_count=count)]
        network = HyperPodNetwork(
            stack,
            "Network",
            cidr="10.1.0.0/16",
            availability_zone="us-west-2a",
            second_availability_zone="us-west-2b",
            orchestrator="eks",
        )
        control_plane = HyperPodEks(
            stack, "Eks", cluster_name="demo", network=network, kubernetes_version="1.33", instance_types=[]
        )
        cluster = HyperPodCluster(
            stack,
            "Cluster",
            cluster_name="demo",
            network=network,
            orchestrator=EksOrchestrator(control_plane=control_plane),
            instance_groups=groups,
            lifecycle=LifecycleBundle(stack, "Lifecycle", name="demo", sources=[Path(script)], config={}),
            continuous_provisioning=continuous,
            install_on_nodes=install,
        )
        if count and install:  # a rule refuses add-ons where there is no node at first
            TrainingOperator(stack, "Operator", eks_cluster=control_plane, cluster=cluster)
        found: dict[str, Any] = assertions.Template.from_stack(stack).to_json()["Resources"]
        return found

    return made


def of(resources: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: item for name, item in resources.items() if item["Type"] == kind}


def addon(resources: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (item for item in of(resources, "AWS::EKS::Addon").values() if item["Properties"]["AddonName"] == name)
    return dict(found)


def test_with_continuous_provisioning_what_needs_nodes_waits_for_the_first_one(make: Any) -> None:
    resources = make(continuous=True)
    calls = of(resources, "Custom::HoldfastNodes")
    first, second, third = sorted(calls)
    (cluster,) = of(resources, "AWS::SageMaker::Cluster")

    assert {call["Properties"]["ClusterName"] for call in calls.values()} == {"demo"}
    assert [calls[name]["Properties"]["Last"] for name in (first, second, third)] == ["false", "false", "true"]
    assert cluster in calls[first]["DependsOn"]
    assert first in calls[second]["DependsOn"]
    assert second in calls[third]["DependsOn"]
    assert third in addon(resources, "coredns")["DependsOn"]
    assert third in addon(resources, "cert-manager")["DependsOn"]
    assert third not in addon(resources, "vpc-cni").get("DependsOn", [])


def test_a_cluster_that_is_in_service_with_all_its_nodes_is_itself_what_is_waited_for(make: Any) -> None:
    resources = make(continuous=False)
    (cluster,) = of(resources, "AWS::SageMaker::Cluster")

    assert of(resources, "Custom::HoldfastNodes") == {}
    assert cluster in addon(resources, "coredns")["DependsOn"]


def test_nothing_waits_for_nodes_that_nobody_asked_for(make: Any) -> None:
    assert of(make(continuous=True, count=0), "Custom::HoldfastNodes") == {}


def test_a_stack_that_installs_nothing_on_nodes_waits_for_none(make: Any) -> None:
    resources = make(continuous=True, install=False)
    addons = {item["Properties"]["AddonName"] for item in of(resources, "AWS::EKS::Addon").values()}

    assert of(resources, "Custom::HoldfastNodes") == {}
    assert addons == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}


def test_clusters_on_eks_have_the_tag_that_the_training_operator_asks_for(make: Any) -> None:
    resources = make(continuous=True)
    (hyperpod,) = of(resources, "AWS::SageMaker::Cluster").values()
    (control_plane,) = of(resources, "AWS::EKS::Cluster").values()

    for cluster in (hyperpod, control_plane):
        assert {"Key": "SageMaker", "Value": "true"} in cluster["Properties"]["Tags"]
