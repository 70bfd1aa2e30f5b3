"""HyperPod nodes and events: the node operations of the SageMaker API."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
from datetime import datetime
from typing import Any

from holdfast.localcloud.aws.common import ServiceError, between, page, refuse
from holdfast.localcloud.aws.sagemaker import store, views
from holdfast.localcloud.aws.sagemaker.checks import References
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters

OPERATIONS = {"replace": "replacement", "reboot": "reboot", "delete": "deletion", "check": "deep health check"}
"""Operations as messages and events name them."""
ALLOWED = {
    "reboot": ("Running", "Failure"),
    "replace": ("Running", "Failure"),
    "delete": ("Running", "Failure", "Pending"),
}
"""
Statuses that allow the operation. The API names none ("a state that does not allow ..."): assumed. A stuck
cluster can be deleted.
"""


class NodeOperations:
    def __init__(self, *, clusters: HyperPodClusters, references: References) -> None:
        self._clusters, self._references = clusters, references

    def list_cluster_nodes(
        self,
        *,
        ClusterName: str,
        CreationTimeAfter: datetime | None = None,
        CreationTimeBefore: datetime | None = None,
        InstanceGroupNameContains: str = "",
        MaxResults: int | None = None,
        NextToken: str | None = None,
        SortBy: str = "CREATION_TIME",
        SortOrder: str = "Ascending",
        IncludeNodeLogicalIds: bool = False,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            found = [
                node
                for node in cluster.nodes.values()
                if InstanceGroupNameContains in node.group
                and between(node.created, CreationTimeAfter, CreationTimeBefore)
            ]
            found.sort(
                key=lambda node: (
                    (node.group, "", node.number) if SortBy == "NAME" else ("", node.created.isoformat(), node.number)
                ),
                reverse=SortOrder == "Descending",
            )
            summaries = [views.node_summary(cluster, node, with_logical_id=IncludeNodeLogicalIds) for node in found]
        shown, more = page(summaries, size=MaxResults, token=NextToken)
        return {"ClusterNodeSummaries": shown, **more}

    def describe_cluster_node(self, *, ClusterName: str, NodeId: str = "", NodeLogicalId: str = "") -> dict[str, Any]:
        if bool(NodeId) == bool(NodeLogicalId):
            raise refuse("Exactly one of NodeId or NodeLogicalId must be specified.")
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            node = _lookup(cluster, NodeId or NodeLogicalId)
            if node is None:
                raise ServiceError(
                    "ResourceNotFound", f"Node '{NodeId or NodeLogicalId}' not found in cluster '{cluster.name}'."
                )
            return {"NodeDetails": copy.deepcopy(views.node_details(cluster, node))}

    def list_cluster_events(
        self,
        *,
        ClusterName: str,
        InstanceGroupName: str = "",
        NodeId: str = "",
        EventTimeAfter: datetime | None = None,
        EventTimeBefore: datetime | None = None,
        SortBy: str = "EventTime",  # noqa: ARG002
        SortOrder: str = "Descending",
        ResourceType: str = "",
        OperationId: str = "",
        MaxResults: int | None = None,
        NextToken: str | None = None,
    ) -> dict[str, Any]:
        desired = {
            "InstanceGroupName": InstanceGroupName,
            "InstanceId": NodeId,
            "ResourceType": ResourceType,
            "OperationId": OperationId,
        }
        with self._clusters.lock:
            found = [
                dict(event)
                for event in self._clusters.find(ClusterName).events
                if all(not value or event.get(key) == value for key, value in desired.items())
                and between(event["EventTime"], EventTimeAfter, EventTimeBefore)
            ]
        if SortOrder == "Descending":
            found.reverse()
        shown, more = page(found, size=MaxResults, token=NextToken)
        return {"Events": shown, **more}

    def describe_cluster_event(self, *, EventId: str, ClusterName: str) -> dict[str, Any]:
        with self._clusters.lock:
            for event in self._clusters.find(ClusterName).events:
                if event["EventId"] == EventId:
                    return {"EventDetails": dict(event)}
        raise ServiceError("ResourceNotFound", f"Event '{EventId}' not found in cluster '{ClusterName}'.")

    def batch_replace_cluster_nodes(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("replace", id_key="NodeId", code_key="ErrorCode", prefix="Instance", **arguments)

    def batch_reboot_cluster_nodes(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("reboot", id_key="NodeId", code_key="ErrorCode", prefix="Instance", **arguments)

    def batch_delete_cluster_nodes(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("delete", id_key="NodeId", code_key="Code", prefix="Node", **arguments)

    def batch_add_cluster_nodes(
        self,
        *,
        ClusterName: str,
        NodesToAdd: list[dict[str, Any]],
        ClientToken: str = "",  # noqa: ARG002
    ) -> dict[str, Any]:
        with self._clusters.lock:
            cluster = copy.deepcopy(self._clusters.find(ClusterName))
        if cluster.settings.get("NodeProvisioningMode") != "Continuous":
            raise refuse("BatchAddClusterNodes requires a cluster whose NodeProvisioningMode is Continuous.")
        networks = {name: self._references.networks(cluster.settings, group) for name, group in cluster.groups.items()}
        added: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            for desired in NodesToAdd:
                name, count = desired["InstanceGroupName"], desired["IncrementTargetCountBy"]
                if name not in cluster.groups or name not in networks:
                    failed.append(
                        {
                            "InstanceGroupName": name,
                            "ErrorCode": "InstanceGroupNotFound",
                            "FailedCount": count,
                            "Message": f"Instance group '{name}' not found.",
                        }
                    )
                    continue
                known = set(cluster.nodes)
                self._clusters.add_nodes(cluster, name, count, networks[name])
                cluster.groups[name] = {
                    **cluster.groups[name],
                    "InstanceCount": cluster.groups[name]["InstanceCount"] + count,
                }
                added += [
                    {"NodeLogicalId": node.logical_id, "InstanceGroupName": name, "Status": "Pending"}
                    for node in cluster.nodes.values()
                    if node.instance_id not in known
                ]
            if added:
                self._clusters.begin_change(cluster)
        return {"Successful": added, "Failed": failed}

    def _ask(
        self,
        action: str,
        *,
        id_key: str,
        code_key: str,
        prefix: str,
        ClusterName: str,
        NodeIds: list[str] | None = None,
        NodeLogicalIds: list[str] | None = None,
    ) -> dict[str, Any]:
        if not NodeIds and not NodeLogicalIds:
            raise refuse("At least one of NodeIds or NodeLogicalIds must be specified.")
        not_found = "InstanceIdNotFound" if prefix == "Instance" else "NodeIdNotFound"
        answer: dict[str, Any] = {}
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            if cluster.status in ("Deleting", "Creating"):
                raise refuse(f"Cluster '{cluster.name}' is in {cluster.status} status.")
            for ids, suffix, key in (
                (NodeIds or [], "", id_key),
                (NodeLogicalIds or [], "NodeLogicalIds", "NodeLogicalId"),
            ):
                for node_id in ids:
                    node = _lookup(cluster, node_id)
                    problem: tuple[str, str] | None
                    if node is None:
                        problem = (not_found, f"Node '{node_id}' not found in cluster '{cluster.name}'.")
                    else:
                        problem = self._ask_node(cluster, node, action, prefix)
                    if problem is None:
                        answer.setdefault("Successful" + suffix, []).append(node_id)
                    else:
                        answer.setdefault("Failed" + suffix, []).append(
                            {key: node_id, code_key: problem[0], "Message": problem[1]}
                        )
            if "Successful" in answer or "SuccessfulNodeLogicalIds" in answer:
                if action == "delete":
                    self._clusters.begin_change(cluster)
                else:
                    self._clusters.caller_changed(cluster)
        return answer

    def _ask_node(
        self, cluster: store.ClusterRecord, node: store.ClusterNode, action: str, prefix: str
    ) -> tuple[str, str] | None:
        if node.operation or node.request:
            in_use = "InstanceIdInUse" if prefix == "Instance" else "NodeIdInUse"
            return in_use, _in_use(node)
        group = cluster.groups.get(node.group, {})
        if action != "reboot" and group.get("SlurmConfig", {}).get("NodeType") == "Controller":
            # "NODE_ID_IN_USE" for a deletion (guide, "Scale down a cluster"). For a replacement the code is assumed.
            code = "NodeIdInUse" if action == "delete" else "InvalidInstanceStatus"
            return code, f"Node '{node.instance_id}' is a Slurm controller and cannot be {action}d."
        if node.status not in ALLOWED[action]:
            code = "InvalidNodeStatus" if action == "delete" else "InvalidInstanceStatus"
            return (
                code,
                f"Node '{node.instance_id}' is in {node.status} status, which does not allow it to be {action}d.",
            )
        if action == "delete":
            cluster.groups[node.group] = {**group, "InstanceCount": max(0, group["InstanceCount"] - 1)}
        node.request = action
        node.begin(OPERATIONS[action])
        self._clusters.add_event(
            cluster,
            kind="Instance",
            description=_asked(cluster, node, action),
            group=node.group,
            instance_id=node.instance_id,
        )
        return None


def _in_use(node: store.ClusterNode) -> str:
    """AWS's words, as seen in a stuck operation (field notes)."""
    operation = node.operation or OPERATIONS.get(node.request, node.request)
    since = f"{node.operation_since:%Y-%m-%dT%H:%M:%SZ}" if node.operation_since else "unknown"
    return (
        f"Node has active {operation} operation (started: {since}). Wait for completion or retry if operation is stale."
    )


def _asked(cluster: store.ClusterRecord, node: store.ClusterNode, action: str) -> str:
    where = f"Cluster {cluster.name} and IG {node.group}"
    return f"Instance {OPERATIONS[action]} of {node.instance_id} in {where} was requested"


def _lookup(cluster: store.ClusterRecord, node_id: str) -> store.ClusterNode | None:
    return cluster.nodes.get(node_id) or next(
        (node for node in cluster.nodes.values() if node.logical_id == node_id), None
    )
