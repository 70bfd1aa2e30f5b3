"""
MoveClusterNodes: running nodes go to another group, or to a group of another cluster.

Source: the API's model of botocore 1.44.8. Assumed: the words of refusals, and that the counts of both groups follow
the nodes ("its capacity" is kept).
"""

# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Iterable
from datetime import timedelta
from ipaddress import IPv4Address
from typing import Any

from holdfast.catalog import bounds
from holdfast.localcloud.aws.common import now, refuse
from holdfast.localcloud.aws.sagemaker import store
from holdfast.localcloud.aws.sagemaker.checks import References
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters

TOKEN_KEPT = timedelta(hours=8)


class NodeMoves:
    def __init__(self, *, clusters: HyperPodClusters, references: References) -> None:
        self._clusters, self._references = clusters, references
        self._answers: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {}
        """Client token -> when, parameters, answer."""

    def move_cluster_nodes(
        self,
        *,
        SourceClusterArn: str,
        SourceInstanceGroupName: str,
        TargetClusterArn: str,
        TargetInstanceGroupName: str,
        InstanceCount: int | None = None,
        NodeIds: list[str] | None = None,
        NodeLogicalIds: list[str] | None = None,
        ClientToken: str = "",
    ) -> dict[str, Any]:
        asked = {
            "from": [SourceClusterArn, SourceInstanceGroupName],
            "to": [TargetClusterArn, TargetInstanceGroupName],
            "nodes": [InstanceCount, NodeIds, NodeLogicalIds],
        }
        if sum(given is not None for given in (InstanceCount, NodeIds, NodeLogicalIds)) != 1:
            raise refuse("Exactly one of NodeIds, NodeLogicalIds, or InstanceCount must be specified.")
        with self._clusters.lock:
            if (answered := self._answered(ClientToken, asked)) is not None:
                return answered
            source, target = self._clusters.find(SourceClusterArn), self._clusters.find(TargetClusterArn)
            _check_clusters(source, SourceInstanceGroupName, target, TargetInstanceGroupName)
            settings, group = dict(target.settings), dict(target.groups[TargetInstanceGroupName])
        networks = [network for network, _ in self._references.networks(settings, group)]
        with self._clusters.lock:
            nodes = source.of_group(SourceInstanceGroupName)
            judged = {
                node.instance_id: _problem(node, source=source, target=group, networks=networks) for node in nodes
            }
            answer, chosen = _choose(nodes, judged, InstanceCount=InstanceCount, ids=NodeIds, logical=NodeLogicalIds)
            _check_counts(source, SourceInstanceGroupName, target, TargetInstanceGroupName, moved=len(chosen))
            self._begin(source, target, TargetInstanceGroupName, chosen)
            if ClientToken:
                self._answers[ClientToken] = (now(), asked, answer)
            return answer

    def _answered(self, token: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        self._answers = {name: one for name, one in self._answers.items() if now() - one[0] < TOKEN_KEPT}
        if token not in self._answers:
            return None
        _, before, answer = self._answers[token]
        if before != asked:
            raise refuse("The ClientToken was used before with different parameters.")
        return answer

    def _begin(
        self, source: store.ClusterRecord, target: store.ClusterRecord, group: str, nodes: Iterable[store.ClusterNode]
    ) -> None:
        for node in nodes:
            for cluster, name, change in ((source, node.group, -1), (target, group, 1)):
                settings = cluster.groups[name]
                cluster.groups[name] = {**settings, "InstanceCount": settings["InstanceCount"] + change}
            node.status, node.request, node.target = "DetachInProgress", "detach", [target.arn, group]
            node.begin("move")
            self._clusters.add_event(
                source,
                kind="Instance",
                description=f"Instance {node.instance_id} moves to Cluster {target.name} and IG {group}",
                group=node.group,
                instance_id=node.instance_id,
            )
        self._clusters.caller_changed(source)


def _check_clusters(source: store.ClusterRecord, name: str, target: store.ClusterRecord, other: str) -> None:
    for cluster, group in ((source, name), (target, other)):
        if cluster.status != "InService":
            raise refuse(f"Cluster '{cluster.name}' is in {cluster.status} status. It must be InService.")
        if "Eks" not in cluster.settings.get("Orchestrator", {}):
            raise refuse(f"Cluster '{cluster.name}' must use Amazon EKS orchestration.")
        if cluster.settings.get("NodeProvisioningMode") != "Continuous":
            raise refuse(f"Cluster '{cluster.name}' must use Continuous as the NodeProvisioningMode.")
        if group not in cluster.groups:
            raise refuse(f"Instance group '{group}' does not exist in cluster '{cluster.name}'.")
    if source is target and name == other:
        raise refuse("The target instance group must be different from the source instance group.")


def _check_counts(
    source: store.ClusterRecord, name: str, target: store.ClusterRecord, other: str, *, moved: int
) -> None:
    least = source.groups[name].get("MinInstanceCount", 0)
    if source.groups[name]["InstanceCount"] - moved < least:
        raise refuse(f"The move would reduce instance group '{name}' below its MinInstanceCount of {least}.")
    most = bounds("instance_count").most
    if target.groups[other]["InstanceCount"] + moved > most:
        raise refuse(f"Instance group '{other}' has no room for {moved} nodes; at most {most} are allowed.")


def _problem(
    node: store.ClusterNode, *, source: store.ClusterRecord, target: dict[str, Any], networks: Iterable[Any]
) -> tuple[str, str] | None:
    """Return code and message if a node cannot move."""
    named = f"Node '{node.instance_id}'"
    if node.operation or node.request:
        return "NodeIdInUse", f"{named} has an active {node.operation or node.request} operation."
    if node.status != "Running":
        return "InvalidNodeStatus", f"{named} is in {node.status} status. It must be Running."
    if not any(IPv4Address(node.private_ip) in network for network in networks):
        return "InvalidNodeStatus", f"{named} is not in a subnet of the target instance group."
    kinds = _types(target)
    if not set(_types(source.groups[node.group])[:1]) & set(kinds):
        return "NodeInstanceTypeMismatch", f"The target instance group supports {', '.join(kinds)} only."
    return None


def _types(group: dict[str, Any]) -> list[str]:
    return [*filter(None, [group.get("InstanceType")]), *group.get("InstanceRequirements", {}).get("InstanceTypes", ())]


def _choose(
    nodes: list[store.ClusterNode],
    judged: dict[str, tuple[str, str] | None],
    *,
    InstanceCount: int | None,
    ids: list[str] | None,
    logical: list[str] | None,
) -> tuple[dict[str, Any], list[store.ClusterNode]]:
    """Return the answer and the nodes to move. Refuse if there are none, or too few for a count."""
    if InstanceCount is not None:
        eligible = [node for node in nodes if judged[node.instance_id] is None]
        if len(eligible) < InstanceCount:
            raise refuse(f"Only {len(eligible)} nodes are eligible to move; {InstanceCount} were requested.")
        chosen = eligible[:InstanceCount]
        return {"Successful": [node.instance_id for node in chosen]}, chosen
    suffix, key = ("NodeLogicalIds", "NodeLogicalId") if ids is None else ("", "NodeId")
    by_id = {(node.logical_id if ids is None else node.instance_id): node for node in nodes}
    chosen, failed = [], []
    for one in dict.fromkeys(ids if ids is not None else logical or ()):
        node = by_id.get(one)
        absent = ("NodeIdNotFound", f"Node '{one}' does not exist in the source instance group.")
        problem = absent if node is None else judged[node.instance_id]
        if problem is None and node is not None:
            chosen.append(node)
        elif problem is not None:
            failed.append({key: one, "Code": problem[0], "Message": problem[1]})
    if not chosen:
        raise refuse(f"No node can be moved: {'; '.join(one['Message'] for one in failed)}")
    moved = [node.logical_id if ids is None else node.instance_id for node in chosen]
    return {f"Successful{suffix}": moved, **({f"Failed{suffix}": failed} if failed else {})}, chosen
