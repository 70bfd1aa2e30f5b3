"""AWS's own lifecycle scripts for EKS, byte for byte, on nodes whose containerd and kubelet are real."""

from typing import Any

import pytest
from aws_nodes import CASES
from kubernetes_http import Api
from kubernetes_things import pod, pods_path, ready_nodes, wait_phase
from local_eks import LocalEks, eventually_true

from holdfast.localcloud.nodes import Fleet

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]

CLUSTER = "aws-scripts"
SCRIPTS = CASES / "eks-base-config"
DATA = "/opt/sagemaker/containerd/data-root"

if not SCRIPTS.is_dir():
    pytest.skip("needs AWS's lifecycle scripts beside the checkout", allow_module_level=True)


@pytest.fixture
def instance(local_eks: LocalEks) -> Any:
    """The id of an instance on which AWS's scripts ran, and which has a volume beside the root's."""
    sagemaker, s3 = local_eks.aws("sagemaker"), local_eks.aws("s3")
    described = sagemaker.describe_cluster(ClusterName=local_eks.hyperpod_cluster)
    group = described["InstanceGroups"][0]
    bucket = group["LifeCycleConfig"]["SourceS3Uri"].split("/")[2]
    for path in SCRIPTS.iterdir():
        s3.put_object(Bucket=bucket, Key=f"aws/{path.name}", Body=path.read_bytes())
    sagemaker.create_cluster(
        ClusterName=CLUSTER,
        InstanceGroups=[
            {
                "InstanceGroupName": "workers",
                "InstanceType": "ml.p5.48xlarge",
                "InstanceCount": 1,
                "ExecutionRole": group["ExecutionRole"],
                "InstanceStorageConfigs": [{"EbsVolumeConfig": {"VolumeSizeInGB": 500}}],
                "LifeCycleConfig": {"SourceS3Uri": f"s3://{bucket}/aws", "OnCreate": "on_create.sh"},
            }
        ],
        VpcConfig=described["VpcConfig"],
        Orchestrator=described["Orchestrator"],
    )
    try:

        def in_service() -> bool:
            told = sagemaker.describe_cluster(ClusterName=CLUSTER)
            assert told["ClusterStatus"] != "Failed", told.get("FailureMessage")
            return bool(told["ClusterStatus"] == "InService")

        eventually_true(in_service, "a cluster with AWS's scripts", within_s=240)
        yield sagemaker.list_cluster_nodes(ClusterName=CLUSTER)["ClusterNodeSummaries"][0]["InstanceId"]
    finally:
        sagemaker.delete_cluster(ClusterName=CLUSTER)
        eventually_true(
            lambda: CLUSTER not in [one["ClusterName"] for one in sagemaker.list_clusters()["ClusterSummaries"]],
            "its end",
            within_s=120,
        )


def test_pods_run_where_the_scripts_have_moved_containerd_to_the_volume(
    instance: str, api: Api, namespace: str, local_eks: LocalEks
):
    node = Fleet(home=local_eks.home).node(instance)
    asked = node.run(["systemctl", "show", "containerd", "--property=ExecStart"], timeout_s=20).stdout
    assert "CONTAINERD_CONFIG" in asked or "/opt/sagemaker/containerd/config.toml" in asked
    assert node.run(["test", "-d", f"{DATA}/io.containerd.snapshotter.v1.overlayfs"], timeout_s=20).returncode == 0
    assert node.run(["readlink", "/var/lib/kubelet"], timeout_s=20).stdout.strip() == "/opt/sagemaker/kubelet"
    name = f"hyperpod-{instance}"
    assert name in ready_nodes(api)
    wanted = pod("there", image=local_eks.image, command=("true",), nodeName=name)
    api.post(pods_path(namespace), wanted)
    wait_phase(api, namespace, "there", "Succeeded")
