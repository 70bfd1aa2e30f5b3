"""UpdateClusterSoftware: replace every node of the named groups."""

# ruff: noqa: N803 - arguments bear the names of the API members

from typing import Any

from holdfast.localcloud.aws.common import ServiceError, refuse
from holdfast.localcloud.aws.sagemaker import store
from holdfast.localcloud.aws.sagemaker.checks import References
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters
from holdfast.localcloud.aws.sagemaker.rules import check_deployment


class SoftwareUpdates:
    """UpdateClusterSoftware. Batches and their waits are checked, not applied."""

    def __init__(self, *, clusters: HyperPodClusters, references: References) -> None:
        self._clusters, self._references = clusters, references

    def update_cluster_software(
        self,
        *,
        ClusterName: str,
        InstanceGroups: list[dict[str, str]] | None = None,
        DeploymentConfig: dict[str, Any] | None = None,
        ImageId: str = "",
    ) -> dict[str, Any]:
        check_deployment(DeploymentConfig or {}, where="DeploymentConfig")
        self._references.check_alarms(DeploymentConfig or {})
        if ImageId and any("ImageReleaseVersion" in group for group in InstanceGroups or ()):
            raise refuse("ImageId and ImageReleaseVersion are mutually exclusive.")
        with self._clusters.lock:
            cluster = self._clusters.updatable(ClusterName)
            named = {group["InstanceGroupName"]: group for group in InstanceGroups or ()}
            desired = named or {name: {} for name in cluster.groups}
            for name in desired:
                if name not in cluster.groups:
                    raise refuse(f"Instance group '{name}' does not exist in cluster '{cluster.name}'.")
            mine = [node for node in cluster.nodes.values() if node.group in desired]
            busy = [node for node in mine if node.request or node.status == "DeepHealthCheckInProgress"]
            if busy:
                raise ServiceError("ConflictException", f"Node '{busy[0].instance_id}' has work in progress.")
            for name, group in desired.items():
                self._patch(cluster, name, group.get("ImageReleaseVersion", ""), ImageId)
            cluster.status, cluster.failure = "Updating", ""
            self._clusters.add_event(cluster, kind="Cluster", description="Cluster software update started.")
            self._clusters.caller_changed(cluster)
            return {"ClusterArn": cluster.arn}

    def _patch(self, cluster: store.ClusterRecord, name: str, version: str, image: str) -> None:
        group = dict(cluster.groups[name])
        group |= {"ImageReleaseVersion": version} if version else {}
        group |= {"ImageId": image} if image else {}
        cluster.groups[name] = group
        cluster.software[name] = "InProgress"
        for node in cluster.of_group(name):
            node.request = "replace"
            node.begin("replacement")
