# ruff: noqa: N803 - arguments bear the names of the API members

from typing import Any

from holdfast.localcloud.aws.common import ServiceError, refuse
from holdfast.localcloud.aws.sagemaker import store
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters

CONNECTIVITY = "InstanceConnectivity"
LEAST_NODES = 2
"""Of InstanceConnectivity (guide, sagemaker-hyperpod-resiliency-slurm-deep-health-checks)."""


class HealthChecks:
    """
    StartClusterHealthCheck. All named instances are checked, or none.

    The API declares ResourceNotFound for a cluster only; other errors are a ValidationException (assumed).
    """

    def __init__(self, *, clusters: HyperPodClusters) -> None:
        self._clusters = clusters

    def start_cluster_health_check(
        self, *, ClusterName: str, DeepHealthCheckConfigurations: list[dict[str, Any]]
    ) -> dict[str, Any]:
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            if cluster.status != "InService":
                raise ServiceError(
                    "ConflictException",
                    f"Cluster '{cluster.name}' is in {cluster.status} status. Deep health checks can be started only "
                    "when it is InService.",
                )
            desired = {
                node.instance_id: (node, [str(check) for check in one["DeepHealthChecks"]])
                for one in DeepHealthCheckConfigurations
                for node in _named(cluster, one)
            }
            for node, checks in desired.values():
                node.request, node.checks = "check", checks
                node.begin("deep health check")
                self._clusters.add_event(
                    cluster,
                    kind="Instance",
                    description=f"Deep health check {', '.join(checks)} of instance {node.instance_id} in Cluster "
                    f"{cluster.name} and IG {node.group} was requested",
                    group=node.group,
                    instance_id=node.instance_id,
                )
            self._clusters.caller_changed(cluster)
            return {"ClusterArn": cluster.arn}


def _named(cluster: store.ClusterRecord, desired: dict[str, Any]) -> list[store.ClusterNode]:
    name = desired["InstanceGroupName"]
    if name not in cluster.groups:
        raise refuse(f"Instance group '{name}' does not exist in cluster '{cluster.name}'.")
    role = cluster.groups[name].get("SlurmConfig", {}).get("NodeType", "")
    if role not in ("", "Compute"):
        # A check that fails ends in a replacement, and a controller cannot be replaced (API): assumed.
        raise refuse(f"Instance group '{name}' has {role} nodes. Deep health checks run on Compute nodes.")
    members = {node.instance_id: node for node in cluster.of_group(name)}
    ids = desired.get("InstanceIds") or list(members)
    for one in ids:
        if one not in members:
            raise refuse(f"Instance '{one}' is not in instance group '{name}' of cluster '{cluster.name}'.")
        if members[one].status != "Running" or members[one].operation:
            status = members[one].operation or members[one].status
            raise refuse(f"Instance '{one}' cannot be checked: it is {status}. Only Running instances can.")
    if CONNECTIVITY in desired["DeepHealthChecks"] and len(ids) < LEAST_NODES:
        raise refuse(f"{CONNECTIVITY} requires at least {LEAST_NODES} instances; given: {len(ids)}.")
    return [members[one] for one in ids]
