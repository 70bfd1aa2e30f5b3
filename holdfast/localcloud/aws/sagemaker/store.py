"""Records of HyperPod clusters: plain data and state transitions. `views` has the API's shapes."""

import copy
import secrets
import string
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from holdfast.localcloud.aws.common import ServiceError, now

EVENTS_KEPT = 5000
FIRST_HOST = 10  # nodes of a /24 are called ip-...-10 and up; AWS itself keeps the first four and the last address
RESERVED_LOW = 4


@dataclass(kw_only=True)
class ClusterNode:
    """One instance of a group; `request`: replace, reboot, delete, check, update, detach or none."""

    instance_id: str
    logical_id: str
    group: str
    number: int
    private_ip: str
    zone: str
    created: datetime
    launched: datetime
    status: str = "Pending"
    message: str = ""
    request: str = ""
    new_in_update: bool = False
    operation: str = ""
    """Operation in progress: reboot, replacement, deletion, deep health check; it ends with Running or Failure."""
    operation_since: datetime | None = None
    checks: list[str] = field(default_factory=list)
    """Requested deep health checks."""
    updated: datetime | None = None
    """End of its last software update."""
    target: list[str] = field(default_factory=list)
    """ARN of the cluster and name of the group to which it moves."""

    def begin(self, operation: str) -> None:
        self.operation, self.operation_since = operation, now()

    def end(self) -> None:
        self.operation, self.operation_since = "", None


@dataclass(kw_only=True)
class Rollout:
    """
    Software update of a group, batch by batch.

    Args:
        before: The group's settings, for a rollback.
        waiting: Instance ids that were not begun.
        updating: Those of the current batch.
        done: Those with the new software.
        rested: Begin of the wait after a batch; None while a batch is under way.
        is_rollback: It goes back.
    """

    before: dict[str, Any]
    waiting: list[str]
    batch: int
    rollback_batch: int
    wait_s: int = 0
    alarms: list[str] = field(default_factory=list)
    updating: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    rested: datetime | None = None
    is_rollback: bool = False


@dataclass(kw_only=True)
class ClusterRecord:
    """One cluster: settings, groups by name in the API's shape, nodes and events."""

    arn: str
    name: str
    region: str
    created: datetime
    settings: dict[str, Any]
    groups: dict[str, dict[str, Any]]
    status: str = "Creating"
    failure: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, ClusterNode] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    previous_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    leaving_groups: list[str] = field(default_factory=list)
    software: dict[str, str] = field(default_factory=dict)
    """Group name -> status of its last software update."""
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    """Group name -> its software update under way."""

    def of_group(self, group: str) -> list[ClusterNode]:
        return sorted((node for node in self.nodes.values() if node.group == group), key=lambda node: node.number)

    def staying(self, group: str) -> list[ClusterNode]:
        """Return the nodes of a group without a requested deletion."""
        return [node for node in self.of_group(group) if node.request != "delete"]

    def add_event(
        self, *, kind: str, description: str, level: str = "Info", group: str = "", instance_id: str = ""
    ) -> dict[str, Any]:
        event = {
            "EventId": str(uuid.uuid4()),
            "ClusterArn": self.arn,
            "ClusterName": self.name,
            "ResourceType": kind,
            "EventTime": now(),
            "Description": description,
            "EventLevel": level,
        }
        if group:
            event["InstanceGroupName"] = group
        if instance_id:
            event["InstanceId"] = instance_id
        self.events.append(event)
        del self.events[:-EVENTS_KEPT]
        return event

    def scale_in(self, group: str, count: int) -> None:
        """Request the deletion of the highest-numbered nodes beyond `count`."""
        for node in self.staying(group)[count:]:
            node.request = "delete"

    def restore_groups(self) -> None:
        """Revert the last update: settings and counts; its new nodes are to be deleted."""
        if self.previous_groups:
            self.groups = copy.deepcopy(self.previous_groups)
        self.leaving_groups = []
        for node in self.nodes.values():
            if node.new_in_update:
                node.request = "delete"

    def settle(self) -> None:
        """Finish an update: forget its rollback data."""
        present = {node.group for node in self.nodes.values()}
        self.leaving_groups = [name for name in self.leaving_groups if name in present]
        self.previous_groups = {}
        for node in self.nodes.values():
            node.new_in_update = False


def new_id() -> str:
    """Return an id as at the end of ARNs of clusters and of what belongs to them."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(12))


def new_instance_id() -> str:
    return "i-" + secrets.token_hex(9)[:17]


def cluster_from(record: dict[str, Any]) -> ClusterRecord:
    nodes = {key: ClusterNode(**node) for key, node in record["nodes"].items()}
    rollouts = {key: Rollout(**one) for key, one in record.get("rollouts", {}).items()}
    return ClusterRecord(**{**record, "nodes": nodes, "rollouts": rollouts})


def new_nodes(
    *, cluster: ClusterRecord, group: str, count: int, networks: Iterable[tuple[IPv4Network, str]], taken: set[str]
) -> None:
    """Add `count` pending nodes with addresses of the first (network, zone) that has free ones."""
    free = _free_addresses(networks, taken)
    number = max((node.number for node in cluster.of_group(group)), default=0)
    for _ in range(count):
        address, zone = next(free, (None, ""))
        if address is None:
            raise ServiceError(
                "ValidationException",
                f"The subnets of instance group '{group}' do not have enough free IP addresses for {count} instances.",
            )
        number += 1
        moment = now()
        node = ClusterNode(
            instance_id=new_instance_id(),
            logical_id=f"{group}-{secrets.token_hex(4)}",
            group=group,
            number=number,
            private_ip=str(address),
            zone=zone,
            created=moment,
            launched=moment,
            new_in_update=cluster.status == "Updating",
        )
        cluster.nodes[node.instance_id] = node


def _free_addresses(networks: Iterable[tuple[IPv4Network, str]], taken: set[str]) -> Any:
    for network, zone in networks:
        last = network.num_addresses - 2
        order = [*range(FIRST_HOST, last + 1), *range(RESERVED_LOW, min(FIRST_HOST, last + 1))]
        for offset in order:
            address: IPv4Address = network[offset]
            if str(address) not in taken:
                yield address, zone


RESTRICTED = "Restricted"
"""Member that marks a group of RestrictedInstanceGroups; no shape of the API has it."""
