"""Provisioning as a user has it: Kubernetes with an image that is built, and changes that nobody allowed."""

from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(600)]

KUBERNETES = {
    "name": "kubernetes",
    "cloud": "embedded",
    "account": "123456789012",
    "region": "us-west-2",
    "network": {
        "cidr": "10.1.0.0/16",
        "availability_zone": "us-west-2a",
        "control_plane_availability_zone": "us-west-2b",
    },
    "cluster": {
        "node_provisioning_mode": "Continuous",
        "instance_groups": [
            {"name": "system", "instance_type": "ml.m5.4xlarge", "instance_count": 1},
            {"name": "workers", "instance_type": "ml.g5.8xlarge", "instance_count": 2, "labels": {"role": "training"}},
        ],
    },
    "eks": {"kubernetes_version": "1.34", "training_operator": True},
    "storage": {"on_delete": "Delete", "lustre": {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}},
    "images": {"training": {"source": "build"}},
}


def test_a_kubernetes_cluster_with_an_image_of_its_own(product: Any) -> None:
    path = product.work / "kubernetes.yaml"
    path.write_text(yaml.safe_dump(KUBERNETES))

    product.run("up", str(path))

    described = product.client("sagemaker").describe_cluster(ClusterName="kubernetes")
    assert described["ClusterStatus"] == "InService"
    eks = product.client("eks")
    assert described["Orchestrator"]["Eks"]["ClusterArn"] == eks.describe_cluster(name="kubernetes")["cluster"]["arn"]
    addons = set(eks.list_addons(clusterName="kubernetes")["addons"])
    assert {"vpc-cni", "cert-manager", "amazon-sagemaker-hyperpod-training-operator"} <= addons
    nodes = product.status()["nodes"]
    assert [node["status"] for node in nodes] == ["Running"] * 3
    (uri,) = [
        output["OutputValue"]
        for output in product.client("cloudformation").describe_stacks(StackName="holdfast-kubernetes")["Stacks"][0][
            "Outputs"
        ]
        if output["OutputKey"] == "TrainingImageUri"
    ]
    name, _, tag = uri.partition("/")[2].rpartition(":")
    assert product.client("ecr").describe_images(repositoryName=name, imageIds=[{"imageTag": tag}])["imageDetails"]
    assert (
        "HOLDFAST_TRAINING_IMAGE=" + uri
        in product.run("ssh", nodes[0]["hostname"], "--", "cat", "/etc/holdfast/environment").stdout
    )


def test_what_would_replace_the_cluster_is_refused_before_anything_is_deployed(product: Any) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))
    before = product.status()
    changed = product.environment(
        workers=1, spares=0, network={"cidr": "10.7.0.0/16", "availability_zone": "us-west-2a"}
    )

    diff = product.run("diff", str(changed), check=False)
    up = product.run("up", str(changed), check=False)

    assert diff.returncode == 1
    assert "network.cidr" in diff.stdout
    assert up.returncode == 2
    assert "network.cidr: refused" in up.stderr
    assert product.status()["nodes"] == before["nodes"]
