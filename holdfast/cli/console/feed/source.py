"""Source of the console: AWS APIs and the event log alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.cli.console.model import GroupFacts, NodeFacts
from holdfast.cli.deployed import (
    AwsError,
    Context,
    ServiceEvent,
    describe_cluster,
    hostname_of,
    read_service_events,
    stream_events,
)
from holdfast.localcloud.processes import is_going
from holdfast_common import Event, events_log_group

PAGE = 2000
"""Events that are in memory at once, beside the state."""
SERVICE_EVENT = "hyperpod_event"
"""Kind of an event of HyperPod's own list."""


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    name: str
    status: str
    message: str
    orchestrator: str
    groups: list[GroupFacts] = field(default_factory=list)
    nodes: list[NodeFacts] = field(default_factory=list)


class ClusterSource:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.note = ""
        """Reason why there is no event; empty if the log exists."""

    def cluster(self) -> ClusterFacts | None:
        """Describe the cluster; None if it does not exist. Raises: AwsError, UnreachableError."""
        cluster, nodes = describe_cluster(self._context)
        if not cluster:
            return None
        return ClusterFacts(
            name=cluster.get("ClusterName", self._context.session.cluster_name),
            status=cluster.get("ClusterStatus", ""),
            message=cluster.get("FailureMessage", ""),
            orchestrator="EKS" if "Eks" in cluster.get("Orchestrator", {}) else "Slurm",
            groups=[_group(one) for one in cluster.get("InstanceGroups", [])],
            nodes=[_node(one) for one in nodes],
        )

    def events(self, *, since_ns: int) -> Iterator[Event]:
        """Yield events since then, about in order of time. Raises: AwsError, UnreachableError."""
        try:
            yield from stream_events(self._context, since_ns=since_ns, most=PAGE)
            self.note = ""
        except AwsError as error:
            if error.code != "ResourceNotFoundException":
                raise
            self.note = (
                f"no log group {events_log_group(self._context.session.cluster_name)}: no component writes events"
            )
        if self._context.session.cloud == "aws":
            yield from map(event_of_service, read_service_events(self._context, since_ns=since_ns))

    def is_taken_down(self) -> bool:
        """Return True if the local cloud is gone, or is being removed."""
        if self._context.session.cloud == "aws":
            return False
        local = self._context.local
        return not local.is_claimed() or is_going(local.home)


def event_of_service(found: ServiceEvent) -> Event:
    detail = {"group": found.instance_group, "level": found.level, "resource": found.resource_type}
    return Event(
        time_ns=found.time_ns,
        source="control-plane",
        kind=SERVICE_EVENT,
        node=found.instance_id,
        evidence=found.description,
        detail={name: value for name, value in detail.items() if value},
    )


def _group(one: dict[str, Any]) -> GroupFacts:
    count = one.get("TargetCount", one.get("CurrentCount", 0))
    return GroupFacts(name=one["InstanceGroupName"], instance_type=one.get("InstanceType", ""), target=int(count))


def _node(one: dict[str, Any]) -> NodeFacts:
    return NodeFacts(
        instance_id=one["InstanceId"],
        group=one["InstanceGroupName"],
        instance_type=one.get("InstanceType", ""),
        host=hostname_of(one),
        status=one["InstanceStatus"]["Status"],
        message=one["InstanceStatus"].get("Message", ""),
    )
