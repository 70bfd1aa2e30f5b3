"""HyperPod clusters and their changes, as the control plane reports them or simulated."""

import copy
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from typing import Any

from holdfast.localcloud.aws.common import Plane, ServiceError, aware, now, refuse
from holdfast.localcloud.aws.sagemaker import store
from holdfast.localcloud.aws.sagemaker.notices import ClusterNotices

NODE_STATUSES = (
    "Pending", "Running", "Failure", "ShuttingDown", "SystemUpdating", "DeepHealthCheckInProgress", "NotFound",
    "AttachInProgress",
)  # fmt: skip
CLUSTER_STATUSES = ("InService", "Failed", "RollingBack", "Deleted")
PROVISIONING = timedelta(seconds=0.3)
UPDATE = "software update"
"""Operation of a node, as messages name it."""


class HyperPodClusters:
    """Clusters of one account and region. Services hold `lock` during a call; the plane's calls take it."""

    def __init__(self, *, account: str, region: str, plane: Plane, notices: ClusterNotices) -> None:
        self.account, self.region = account, region
        self.lock = threading.RLock()
        self.by_name: dict[str, store.ClusterRecord] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.follow_updates: Callable[[store.ClusterRecord], None] = lambda _: None
        """Takes the next step of the software updates of a cluster."""
        self._plane, self._notices = plane, notices

    def requests(self) -> list[dict[str, str]]:
        with self.lock:
            for cluster in self.by_name.values():
                self.follow_updates(cluster)
            return [
                {
                    "cluster_arn": cluster.arn,
                    "instance_id": node.instance_id,
                    "action": " ".join([node.request, *(node.checks if node.request == "check" else ())]),
                }
                for cluster in self.by_name.values()
                for node in cluster.nodes.values()
                if node.request
            ]

    def report(self, body: dict[str, Any]) -> None:
        with self.lock:
            cluster = self.find(body["cluster_arn"])
            _check_report(body)
            for node in body.get("nodes", ()):
                self._report_node(cluster, node)
            for event in body.get("events", ()):
                self.add_event(
                    cluster,
                    kind=event["resource_type"],
                    description=event.get("description", ""),
                    level=event.get("level", "Info"),
                    group=event.get("instance_group", ""),
                    instance_id=event.get("instance_id", ""),
                )
            self._report_cluster(cluster, body)
            self.follow_updates(cluster)
        self.on_change()

    def _report_cluster(self, cluster: store.ClusterRecord, body: dict[str, Any]) -> None:
        status = body.get("cluster_status")
        if cluster.status == "Deleting" and status != "Deleted":
            return  # said before the control plane learned of the deletion
        if status == "InService" and cluster.rollouts:
            return  # said before it learned of the new software
        if "failure_message" in body:
            cluster.failure = body["failure_message"]
        if status == "Deleted":
            del self.by_name[cluster.name]
            self._notices.state_change(cluster)
        elif status:
            if status == "RollingBack" and cluster.status != "RollingBack":
                cluster.restore_groups()
            cluster.status = status
            if status in ("InService", "Failed"):
                cluster.settle()
            self._notices.state_change(cluster)

    def _report_node(self, cluster: store.ClusterRecord, reported: dict[str, Any]) -> None:
        node = cluster.nodes.get(reported["instance_id"])
        old = cluster.nodes.get(reported.get("replaces", ""))
        if old is not None:
            del cluster.nodes[old.instance_id]
            if node is None:
                moment = now()
                node = copy.copy(old)
                node.instance_id, node.request, node.message = reported["instance_id"], "", ""
                if node.operation != "replacement":
                    node.begin("replacement")
                node.created = node.launched = moment
                cluster.nodes[node.instance_id] = node
        if node is None:
            if reported["status"] == "NotFound":
                return
            raise ServiceError(
                "ResourceNotFound", f"node '{reported['instance_id']}' is not in cluster '{cluster.name}'", 404
            )
        if reported["status"] == "NotFound":
            del cluster.nodes[node.instance_id]
            return
        if node.request == "detach" and reported["status"] == "AttachInProgress":
            self._hand_off(cluster, node)
            return
        if node.request == "reboot" and (reported["status"] == "Pending" or "launch_time" in reported):
            node.request = ""  # the reboot has begun, or has already happened
        if node.request == "update" and reported["status"] == "SystemUpdating":
            node.request = ""
        if node.request == "check" and reported["status"] in ("Running", "Failure"):
            node.request, node.checks = "", []
        _follow(node, reported["status"])
        self._health(cluster, node, reported, replaced=old is not None)
        node.status = reported["status"]
        node.message = reported.get("message", "")
        node.private_ip = reported.get("private_ip", node.private_ip)
        if "launch_time" in reported:
            node.launched = _moment(reported["launch_time"])

    def _hand_off(self, cluster: store.ClusterRecord, node: store.ClusterNode) -> None:
        """Give a detached node to the group to which it moves; "the node appears in the target cluster" (API)."""
        arn, group = node.target
        target = self.find(arn)
        del cluster.nodes[node.instance_id]
        node.request, node.target, node.status = "", [], "AttachInProgress"
        node.group, node.number = group, max((one.number for one in target.of_group(group)), default=0) + 1
        target.nodes[node.instance_id] = node
        self.add_event(
            target,
            kind="Instance",
            description=f"Instance {node.instance_id} is attached to Cluster {target.name} and IG {group}",
            group=group,
            instance_id=node.instance_id,
        )

    def _health(
        self, cluster: store.ClusterRecord, node: store.ClusterNode, reported: dict[str, Any], *, replaced: bool
    ) -> None:
        if reported["status"] == "Failure" and node.status != "Failure":
            reason = reported.get("message", "") or "the instance failed"
            self._notices.node_health(cluster, node, healthy=False, reason=reason, repair="None")
        elif replaced:
            reason = f"it replaces {reported['replaces']}"
            self._notices.node_health(cluster, node, healthy=False, reason=reason, repair="Replace")
        if reported["status"] == "Running" and node.status != "Running" and node.created != node.launched:
            self._notices.node_health(cluster, node, healthy=True, reason="the instance works", repair="None")

    def begin_change(self, cluster: store.ClusterRecord) -> None:
        if cluster.status == "InService":
            cluster.status, cluster.failure = "Updating", ""
        self.caller_changed(cluster)

    def caller_changed(self, cluster: store.ClusterRecord) -> None:
        self._notices.state_change(cluster)
        if self._plane.simulated:
            self._simulate(cluster)
        self._plane.changed()

    def _simulate(self, cluster: store.ClusterRecord) -> None:
        """Simulate a control plane; with continuous provisioning, new nodes follow the clock."""
        later = cluster.settings.get("NodeProvisioningMode") == "Continuous"
        for node in list(cluster.nodes.values()):
            if node.request == "delete":
                del cluster.nodes[node.instance_id]
            elif node.request == "replace":
                reported = {"instance_id": store.new_instance_id(), "replaces": node.instance_id, "status": "Running"}
                self._report_node(cluster, reported)
            elif node.request == "detach":
                arn = node.target[0]
                self._report_node(cluster, {"instance_id": node.instance_id, "status": "AttachInProgress"})
                self._report_node(self.find(arn), {"instance_id": node.instance_id, "status": "Running"})
            elif node.request == "update":
                self._report_node(cluster, {"instance_id": node.instance_id, "status": "SystemUpdating"})
                self._report_node(cluster, {"instance_id": node.instance_id, "status": "Running"})
            elif node.status != "Pending" or not later:
                node.status, node.request, node.checks = "Running", "", []
                node.end()
        ended = {"Creating": "InService", "Updating": "InService", "Deleting": "Deleted"}.get(cluster.status)
        if ended:
            self._report_cluster(cluster, {"cluster_status": ended})

    def refuse_taken(self, name: str) -> None:
        if name in self.by_name:
            raise ServiceError("ResourceInUse", f"Cluster name '{name}' is already in use.")

    def updatable(self, name: str) -> store.ClusterRecord:
        cluster = self.find(name)
        if cluster.status != "InService":
            raise ServiceError(
                "ConflictException",
                f"Cluster '{cluster.name}' is in {cluster.status} status. It can be updated only when InService.",
            )
        return cluster

    def find(self, name_or_arn: str) -> store.ClusterRecord:
        for cluster in self.by_name.values():
            if name_or_arn in (cluster.name, cluster.arn):
                self._ripen(cluster)
                if self._plane.simulated:
                    self.follow_updates(cluster)
                return cluster
        raise ServiceError("ResourceNotFound", f"Cluster '{name_or_arn}' not found.")

    def _ripen(self, cluster: store.ClusterRecord) -> None:
        if not self._plane.simulated:
            return
        for node in cluster.nodes.values():
            if node.status == "Pending" and now() - node.created >= PROVISIONING:
                node.status = "Running"
                self.add_event(
                    cluster,
                    kind="Instance",
                    description="The instance is in service.",
                    group=node.group,
                    instance_id=node.instance_id,
                )

    def add_event(self, cluster: store.ClusterRecord, **event: str) -> None:
        self._notices.cluster_event(cluster, cluster.add_event(**event))

    def add_nodes(
        self, cluster: store.ClusterRecord, group: str, count: int, networks: list[tuple[IPv4Network, str]]
    ) -> None:
        taken = {node.private_ip for other in self.by_name.values() for node in other.nodes.values()}
        taken |= {node.private_ip for node in cluster.nodes.values()}
        store.new_nodes(cluster=cluster, group=group, count=count, networks=networks, taken=taken)


def _follow(node: store.ClusterNode, status: str) -> None:
    if status == "Running" and node.operation == UPDATE and not node.request:
        node.updated = now()
    if status in ("Running", "Failure"):
        if not node.request:
            node.end()
    elif status == "DeepHealthCheckInProgress":
        if node.operation != "deep health check":
            node.begin("deep health check")
    elif status == "Pending" and node.status in ("Running", "Failure") and not node.operation:
        node.begin("reboot")


def _check_report(body: dict[str, Any]) -> None:
    status = body.get("cluster_status")
    if status is not None and status not in CLUSTER_STATUSES:
        raise refuse(f"cluster_status is '{status}'; allowed: {', '.join(CLUSTER_STATUSES)}")
    for node in body.get("nodes", ()):
        if node.get("status") not in NODE_STATUSES or not node.get("instance_id"):
            raise refuse(f"a node needs instance_id and a status among {', '.join(NODE_STATUSES)}; given: {node}")


def _moment(given: str | float) -> datetime:
    if isinstance(given, str):
        return aware(datetime.fromisoformat(given))
    return datetime.fromtimestamp(given, tz=UTC)
