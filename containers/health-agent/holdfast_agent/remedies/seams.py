"""Interfaces of the marks, for nodes and for the decider."""

from typing import Optional, Protocol

from holdfast_common.decisions import NodeState, Order, Report


class RefusedError(Exception):
    """Forbidden; the message has the reason. ``in_use``: it is in progress."""

    def __init__(self, why: str, *, in_use: bool = False) -> None:
        super().__init__(why)
        self.in_use = in_use


class NodeMarks(Protocol):
    """Mark of one node: its report, and the order for it."""

    def own(self) -> NodeState: ...

    def report(self, report: Optional[Report]) -> None: ...


class ClusterMarks(Protocol):
    """Marks of all nodes, and the requests to HyperPod that carry no instance id."""

    def look(self) -> "list[NodeState]": ...

    def node(self, name: str) -> NodeState: ...

    def write(self, node: NodeState, order: Optional[Order]) -> None: ...

    def ask(self, node: NodeState, remedy: str) -> None: ...

    def force(self, node: NodeState, remedy: str) -> None: ...

    def requeue(self, node: NodeState, task: str) -> None: ...
