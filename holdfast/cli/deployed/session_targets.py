"""Targets of sessions to the nodes of a cluster on AWS."""

from typing import Any

from holdfast.cli.deployed.cluster import cluster_arn, cluster_nodes, hostname_of
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import CommandError
from holdfast.session_manager import ClusterTarget


class SessionTargets:
    """Reads the nodes once, and again for a name that it does not have."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[str, str] = {}

    def find(self, node: str) -> str:
        """Return the target of an instance id, host name, address or Kubernetes name. Raises: CommandError."""
        name = node.removeprefix("hyperpod-")
        if name not in self._known:
            nodes = cluster_nodes(self._context)
            cluster_id = cluster_arn(self._context).rpartition("/")[2]
            self._known = {name: _target(cluster_id, one) for one in nodes for name in _names(one)}
        if name not in self._known:
            ids = ", ".join(dict.fromkeys(one["InstanceId"] for one in nodes)) or "none"
            raise CommandError(f"cluster {self._context.session.cluster_name} has no node {node!r}; its nodes: {ids}")
        return self._known[name]

    def forget(self) -> None:
        """A node may have been replaced."""
        self._known = {}


def _target(cluster_id: str, node: dict[str, Any]) -> str:
    target = ClusterTarget(cluster_id=cluster_id, group=node["InstanceGroupName"], instance_id=node["InstanceId"])
    return str(target)


def _names(node: dict[str, Any]) -> set[str]:
    names = {str(node["InstanceId"]), hostname_of(node), str(node.get("PrivatePrimaryIp", ""))}
    return names - {""}
