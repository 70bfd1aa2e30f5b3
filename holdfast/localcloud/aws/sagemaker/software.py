"""
UpdateClusterSoftware: new root volumes for the nodes of groups, in batches, with rollbacks.

Sources: SageMaker developer guide, "Update the SageMaker HyperPod platform software of a cluster" (nothing is done
where the software is the latest), "Update your AMI version" (batches with EKS only; alarms are observed in the waits),
and the API (SoftwareUpdateStatus, ImageId). Assumed: a node that fails rolls its group back, as an alarm does.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError, now, refuse
from holdfast.localcloud.aws.sagemaker import store
from holdfast.localcloud.aws.sagemaker.checks import References
from holdfast.localcloud.aws.sagemaker.clusters import UPDATE, HyperPodClusters
from holdfast.localcloud.aws.sagemaker.rules import check_deployment

IN_PROGRESS, ROLLING_BACK = "InProgress", "RollbackInProgress"


class SoftwareUpdates:
    def __init__(self, *, client: ClientFactory, clusters: HyperPodClusters, references: References) -> None:
        self._client, self._clusters, self._references = client, clusters, references
        clusters.follow_updates = self._follow

    def update_cluster_software(
        self,
        *,
        ClusterName: str,
        InstanceGroups: list[dict[str, str]] | None = None,
        DeploymentConfig: dict[str, Any] | None = None,
        ImageId: str = "",
    ) -> dict[str, Any]:
        deployment = DeploymentConfig or {}
        check_deployment(deployment, where="DeploymentConfig")
        self._references.check_alarms(deployment)
        if ImageId and any("ImageReleaseVersion" in group for group in InstanceGroups or ()):
            raise refuse("ImageId and ImageReleaseVersion are mutually exclusive.")
        with self._clusters.lock:
            cluster = self._clusters.updatable(ClusterName)
            if deployment and "Eks" not in cluster.settings.get("Orchestrator", {}):
                raise refuse("DeploymentConfig requires Orchestrator.Eks: batches are available with Amazon EKS only.")
            named = {group["InstanceGroupName"]: group for group in InstanceGroups or ()}
            desired = named or {name: {} for name in cluster.groups}
            changes = {
                name: _change(cluster, name, version=group.get("ImageReleaseVersion", ""), image=ImageId)
                for name, group in desired.items()
            }
            mine = [node for node in cluster.nodes.values() if changes.get(node.group)]
            busy = [node for node in mine if node.request or node.operation]
            if busy:
                raise ServiceError("ConflictException", f"Node '{busy[0].instance_id}' has work in progress.")
            self._begin(cluster, changes, deployment)
            return {"ClusterArn": cluster.arn}

    def _begin(
        self, cluster: store.ClusterRecord, changes: dict[str, dict[str, Any]], deployment: dict[str, Any]
    ) -> None:
        for name, change in changes.items():
            nodes = [node.instance_id for node in cluster.of_group(name)]
            cluster.software[name] = IN_PROGRESS if change and nodes else "Succeeded"
            if change and nodes:
                policy = deployment.get("RollingUpdatePolicy", {})
                batch = _size(policy.get("MaximumBatchSize"), of=len(nodes))
                cluster.rollouts[name] = store.Rollout(
                    before=cluster.groups[name],
                    waiting=nodes,
                    batch=batch,
                    rollback_batch=_size(policy.get("RollbackMaximumBatchSize"), of=batch),
                    wait_s=deployment.get("WaitIntervalInSeconds", 0),
                    alarms=[one["AlarmName"] for one in deployment.get("AutoRollbackConfiguration", ())],
                )
            cluster.groups[name] = {**cluster.groups[name], **change}
        if not cluster.rollouts:
            return
        cluster.status, cluster.failure = "SystemUpdating", ""
        self._clusters.add_event(cluster, kind="Cluster", description="Cluster software update started.")
        self._follow(cluster)

    # --- batches

    def _follow(self, cluster: store.ClusterRecord) -> None:
        if not cluster.rollouts:
            return
        moved = False
        while any(self._step(cluster, name) for name in list(cluster.rollouts)):
            moved = True
            # Simulated nodes are updated at once, so that the next batch may be due.
            self._clusters.caller_changed(cluster)
        if moved and not cluster.rollouts and cluster.status == "SystemUpdating":
            cluster.status = "InService"
            self._clusters.caller_changed(cluster)

    def _step(self, cluster: store.ClusterRecord, group: str) -> bool:
        """Return True if a batch was begun, or the group's update has ended."""
        rollout = cluster.rollouts[group]
        batch = [cluster.nodes[name] for name in rollout.updating if name in cluster.nodes]
        if any(node.operation == UPDATE or node.request for node in batch):
            return False
        failed = [node for node in batch if node.status == "Failure"]
        if failed and rollout.is_rollback:
            return self._end(cluster, group, "Failed")
        if failed:
            reason = failed[0].message or "the instance failed"
            return self._roll_back(
                cluster, group, f"The software update of instance {failed[0].instance_id} failed: {reason}"
            )
        if rollout.updating:
            rollout.done, rollout.updating, rollout.rested = [*rollout.done, *rollout.updating], [], now()
        if alarm := self._alarm(rollout):
            return self._roll_back(
                cluster, group, f"The alarm '{alarm}' of AutoRollbackConfiguration is in ALARM state."
            )
        waits = rollout.rested is not None and not rollout.is_rollback and (rollout.waiting or rollout.alarms)
        if waits and rollout.rested is not None and (now() - rollout.rested).total_seconds() < rollout.wait_s:
            return False
        if not rollout.waiting:
            return self._end(cluster, group, "RollbackComplete" if rollout.is_rollback else "Succeeded")
        self._begin_batch(cluster, rollout)
        return True

    def _begin_batch(self, cluster: store.ClusterRecord, rollout: store.Rollout) -> None:
        size = rollout.rollback_batch if rollout.is_rollback else rollout.batch
        rollout.updating, rollout.waiting = rollout.waiting[:size], rollout.waiting[size:]
        for name in rollout.updating:
            if name in cluster.nodes:
                cluster.nodes[name].request = "update"
                cluster.nodes[name].begin(UPDATE)

    def _roll_back(self, cluster: store.ClusterRecord, group: str, reason: str) -> bool:
        rollout = cluster.rollouts[group]
        cluster.groups[group] = rollout.before
        cluster.software[group], cluster.failure = ROLLING_BACK, reason
        rollout.is_rollback, rollout.rested = True, None
        rollout.waiting, rollout.updating, rollout.done = [*rollout.done, *rollout.updating], [], []
        self._clusters.add_event(cluster, kind="InstanceGroup", description=reason, level="Error", group=group)
        return True

    def _end(self, cluster: store.ClusterRecord, group: str, status: str) -> bool:
        del cluster.rollouts[group]
        cluster.software[group] = status
        return True

    def _alarm(self, rollout: store.Rollout) -> str:
        if rollout.is_rollback or rollout.rested is None or not rollout.alarms:
            return ""
        kinds = ["MetricAlarm", "CompositeAlarm"]
        found = self._client("cloudwatch").describe_alarms(AlarmNames=rollout.alarms, AlarmTypes=kinds)
        alarms = [one for key in ("MetricAlarms", "CompositeAlarms") for one in found.get(key, ())]
        return next((one["AlarmName"] for one in alarms if one["StateValue"] == "ALARM"), "")


def _change(cluster: store.ClusterRecord, name: str, *, version: str, image: str) -> dict[str, Any]:
    """Return the settings of a group that the update changes; empty if its nodes have this software."""
    group = cluster.groups.get(name)
    if group is None:
        raise refuse(f"Instance group '{name}' does not exist in cluster '{cluster.name}'.")
    if not version and not image and group.get("ImageId", "default") != "default":
        raise refuse(f"Instance group '{name}' uses a custom AMI. Specify ImageId, or default.")
    if version:
        return {} if group.get("ImageReleaseVersion") == version else {"ImageReleaseVersion": version}
    return {"ImageId": image} if image and group.get("ImageId", "default") != image else {}


def _size(given: dict[str, Any] | None, *, of: int) -> int:
    """Return a number of instances; a percentage is rounded down, to one at least (assumed)."""
    if given is None:
        return max(1, of)
    if given["Type"] == "INSTANCE_COUNT":
        return int(given["Value"])
    return max(1, of * int(given["Value"]) // 100)
