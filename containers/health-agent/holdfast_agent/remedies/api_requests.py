"""Requests by HyperPod's API: BatchRebootClusterNodes, BatchReplaceClusterNodes."""

from collections.abc import Callable
from typing import Optional

from holdfast_agent.aws import Api, AwsError
from holdfast_agent.remedies.seams import ClusterMarks, RefusedError
from holdfast_common.decisions import NodeState, Order

OPERATIONS = {"reboot": "BatchRebootClusterNodes", "replace": "BatchReplaceClusterNodes"}
_PASSING = ("InternalServerError", "ThrottlingException")


class ApiRequests:
    """Marks of an orchestrator, with requests by the API."""

    def __init__(self, marks: ClusterMarks, *, cluster: str, api: "Callable[[], Api]") -> None:
        self._marks, self._cluster, self._api = marks, cluster, api

    def look(self) -> "list[NodeState]":
        return self._marks.look()

    def node(self, name: str) -> NodeState:
        return self._marks.node(name)

    def write(self, node: NodeState, order: Optional[Order]) -> None:
        self._marks.write(node, order)

    def requeue(self, node: NodeState, task: str) -> None:
        self._marks.requeue(node, task)

    def ask(self, node: NodeState, remedy: str) -> None:
        """Raises AwsError, and RefusedError where it is in progress or forbidden."""
        instance = node.report.instance if node.report is not None else ""
        if not instance or not self._cluster:
            raise RefusedError("remedies.way api needs node.instance_id and cluster.name; set both")
        answer = self._api().call(OPERATIONS[remedy], ClusterName=self._cluster, NodeIds=[instance])
        for failed in answer.get("Failed") or []:
            code, why = str(failed.get("ErrorCode", "")), str(failed.get("Message", ""))
            if code in _PASSING:
                raise AwsError(code, why)
            raise RefusedError(f"{code}: {why}", in_use=code == "InstanceIdInUse")
        if instance not in (answer.get("Successful") or []):
            raise AwsError("NoAnswer", f"{OPERATIONS[remedy]} returned no result for {instance}")

    def force(self, node: NodeState, remedy: str) -> None:
        self.ask(node, remedy)
