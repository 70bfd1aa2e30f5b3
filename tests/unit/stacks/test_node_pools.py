"""Node pools of an environment file, as Kubernetes gets them: values of the template, rendered by helm."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import assertions
from installed_charts import helm_program, helm_template
from unlinted import unlinted

from holdfast.config import load
from holdfast.validation.from_template import check_template
from holdfast.validation.pages import EXAMPLES
from holdfast_constructs.eks_addons import NODE_POOLS_CHART
from holdfast_stacks import HyperPodStack

TAINT = {"key": "purpose", "value": "burst", "effect": "NoSchedule"}


def resources(folder: Path, **changes: Any) -> dict[str, Any]:
    environment = yaml.safe_load((EXAMPLES / "eks.yaml").read_text())
    environment["cluster"]["auto_scaler"] = "Karpenter"
    environment["cluster"]["instance_groups"] += [
        {"name": name, "instance_type": kind, "instance_count": 0, "taints": [TAINT]}
        for name, kind in (("burst-a", "ml.g6e.12xlarge"), ("burst-b", "ml.g5.12xlarge"))
    ]
    pool = {"name": "burst", "instance_groups": ["burst-a", "burst-b"], "limits": {"vcpus": 4_000_000, "gpus": 16}}
    environment["eks"]["node_pools"] = [pool, {"name": "rest", "instance_groups": ["burst-b"]}]
    file = folder / "pools.yaml"
    file.write_text(json.dumps(environment | changes))
    stack = HyperPodStack(cdk.App(), "Pools", environment=load(file), folder=folder)
    found: dict[str, Any] = assertions.Template.from_stack(stack).to_json()["Resources"]
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with unlinted():
        yield resources(tmp_path_factory.mktemp("pools"))


def releases(template: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in template.values() if each.get("Properties", {}).get("Release") == "holdfast-node-pools"]


def test_a_pool_is_a_node_class_of_its_groups_and_a_node_pool_with_their_taints(
    template: dict[str, Any], tmp_path: Path
) -> None:
    (release,) = releases(template)
    (tmp_path / "values.json").write_text(release["Properties"]["Values"])
    chart = ["--values", str(tmp_path / "values.json")]

    made = helm_template(helm_program(tmp_path), NODE_POOLS_CHART, *chart, release="holdfast-node-pools", minor="1.34")

    found = {(each["kind"], each["metadata"]["name"]): each for each in made}
    assert set(found) == {(kind, name) for kind in ("HyperpodNodeClass", "NodePool") for name in ("burst", "rest")}
    assert found["HyperpodNodeClass", "burst"] == {
        "apiVersion": "karpenter.sagemaker.amazonaws.com/v1",
        "kind": "HyperpodNodeClass",
        "metadata": {"name": "burst"},
        "spec": {"instanceGroups": ["burst-a", "burst-b"]},
    }
    node_class = {"group": "karpenter.sagemaker.amazonaws.com", "kind": "HyperpodNodeClass", "name": "burst"}
    assert found["NodePool", "burst"] == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "burst"},
        "spec": {
            "disruption": {"consolidateAfter": "300s", "consolidationPolicy": "WhenEmpty"},
            "limits": {"cpu": "4000000", "nvidia.com/gpu": "16"},
            "template": {
                "spec": {
                    "expireAfter": "Never",
                    "nodeClassRef": node_class,
                    "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
                    "taints": [TAINT],
                }
            },
        },
    }
    assert "limits" not in found["NodePool", "rest"]["spec"]


def test_pools_wait_for_the_cluster_and_for_its_kinds_but_not_for_a_node(template: dict[str, Any]) -> None:
    (release,) = releases(template)
    (cluster,) = (name for name, each in template.items() if each["Type"] == "AWS::SageMaker::Cluster")

    assert cluster in release["DependsOn"]
    assert release["Properties"]["AwaitKinds"] == "true"
    assert [each for each in release["DependsOn"] if template[each]["Type"] == "Custom::HoldfastNodes"] == []


def manifest(release: dict[str, Any]) -> dict[str, Any]:
    """The same objects as the CDK's own EKS modules apply them."""
    objects = json.dumps(json.loads(release["Properties"]["Values"])["objects"])
    properties = {"ServiceToken": "arn:aws:lambda:us-west-2:111122223333:function:kubectl", "Manifest": objects}
    return {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": properties}


@pytest.mark.parametrize("by", [dict, manifest])
def test_a_template_is_judged_as_its_file(
    by: Callable[[dict[str, Any]], dict[str, Any]], template: dict[str, Any], tmp_path: Path
) -> None:
    made = copy.deepcopy(template)
    (name,) = (key for key, each in made.items() if each.get("Properties", {}).get("Release") == "holdfast-node-pools")
    (cluster,) = (each["Properties"] for each in made.values() if each["Type"] == "AWS::SageMaker::Cluster")
    made[name] = by(made[name])
    cluster["InstanceGroups"][2]["InstanceCount"] = 3
    (tmp_path / "template.json").write_text(json.dumps({"Resources": made}))

    found = check_template(tmp_path / "template.json", linted=False).findings

    assert [each.message.partition(";")[0] for each in found if each.code in ("HF360", "HF361")] == [
        "got 3 nodes in a group of a node pool"
    ]


def test_a_rehearsal_has_no_karpenter_and_no_pools(tmp_path: Path) -> None:
    with unlinted():
        assert releases(resources(tmp_path, cloud="embedded", account="123456789012")) == []
