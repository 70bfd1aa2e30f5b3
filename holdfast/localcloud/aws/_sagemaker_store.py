"""Records of HyperPod clusters: plain data, the transitions between their states, and what the API says of them.

Nothing here talks to another service or knows HTTP; `_sagemaker` validates and calls, `_hyperpod_plane` reports.
"""

import copy
import secrets
import string
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from holdfast.localcloud.aws._errors import ServiceError

EVENTS_KEPT = 5000
FIRST_HOST = 10  # nodes of a /24 are called ip-...-10 and up; AWS itself keeps the first four and the last address
RESERVED_LOW = 4
COPIED_SETTINGS = (
    "InstanceGroupName",
    "InstanceType",
    "LifeCycleConfig",
    "ExecutionRole",
    "InstanceStorageConfigs",
    "OnStartDeepHealthChecks",
    "TrainingPlanArn",
    "OverrideVpcConfig",
    "ScheduledUpdateConfig",
    "CapacityRequirements",
    "SlurmConfig",
    "NetworkInterface",
)
CLUSTER_SETTINGS = (
    "VpcConfig",
    "Orchestrator",
    "NodeRecovery",
    "TieredStorageConfig",
    "NodeProvisioningMode",
    "ClusterRole",
)


@dataclass(kw_only=True)
class Node:
    """One instance of a group; `request` is what a caller wants done with it: replace, reboot, delete or nothing."""

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


@dataclass(kw_only=True)
class Cluster:
    """One cluster: its settings as given, its groups by name in the API's shape, its nodes and events."""

    arn: str
    name: str
    region: str
    created: datetime
    settings: dict[str, Any]
    groups: dict[str, dict[str, Any]]
    status: str = "Creating"
    failure: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    previous_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    leaving_groups: list[str] = field(default_factory=list)

    def of_group(self, group: str) -> list[Node]:
        """Nodes of a group, in order of their numbers."""
        return sorted((node for node in self.nodes.values() if node.group == group), key=lambda node: node.number)

    def staying(self, group: str) -> list[Node]:
        """Nodes of a group that nobody asked to delete."""
        return [node for node in self.of_group(group) if node.request != "delete"]

    def add_event(
        self, *, kind: str, description: str, level: str = "Info", group: str = "", instance_id: str = ""
    ) -> None:
        """Append an event; the oldest go when there are too many."""
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

    def scale_in(self, group: str, count: int) -> None:
        """Ask for the deletion of the highest-numbered nodes beyond `count`."""
        for node in self.staying(group)[count:]:
            node.request = "delete"

    def restore_groups(self) -> None:
        """Take back the last update: earlier settings and counts; nodes it brought are to be deleted."""
        if self.previous_groups:
            self.groups = copy.deepcopy(self.previous_groups)
        self.leaving_groups = []
        for node in self.nodes.values():
            if node.new_in_update:
                node.request = "delete"

    def settle(self) -> None:
        """An update ended, well or badly: forget what was needed to take it back."""
        present = {node.group for node in self.nodes.values()}
        self.leaving_groups = [name for name in self.leaving_groups if name in present]
        self.previous_groups = {}
        for node in self.nodes.values():
            node.new_in_update = False


def now() -> datetime:
    return datetime.now(tz=UTC)


def new_cluster_id() -> str:
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(12))


def new_instance_id() -> str:
    return "i-" + secrets.token_hex(9)[:17]


def cluster_from(record: dict[str, Any]) -> Cluster:
    """The inverse of `dataclasses.asdict` for a cluster."""
    nodes = {key: Node(**node) for key, node in record["nodes"].items()}
    return Cluster(**{**record, "nodes": nodes})


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """A deep copy as plain data."""
    return asdict(cluster)


def new_nodes(
    *, cluster: Cluster, group: str, count: int, networks: Iterable[tuple[IPv4Network, str]], taken: set[str]
) -> None:
    """Add `count` pending nodes with addresses from the first of (network, zone) that still has some."""
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
        node = Node(
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


def group_details(cluster: Cluster, name: str) -> dict[str, Any]:
    """A group as DescribeCluster shows it."""
    leaving = name in cluster.leaving_groups and name not in cluster.groups
    group = cluster.previous_groups.get(name, {}) if leaving else cluster.groups[name]
    details: dict[str, Any] = {key: group[key] for key in COPIED_SETTINGS if key in group}
    details["InstanceGroupName"] = name
    running = [node for node in cluster.of_group(name) if node.status == "Running"]
    target = 0 if leaving else group["InstanceCount"]
    details |= {
        "CurrentCount": len(running),
        "TargetCount": target,
        "ThreadsPerCore": group.get("ThreadsPerCore", 1),
        "Status": "Deleting" if leaving else _group_status(cluster, name, target),
        "ImageVersionStatus": "UpToDate",
    }
    if "MinInstanceCount" in group:
        details["MinCount"] = group["MinInstanceCount"]
    if "InstanceRequirements" in group:
        types = group["InstanceRequirements"]["InstanceTypes"]
        details["InstanceRequirements"] = {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types}
    for key in ("ImageId", "ImageReleaseVersion"):
        if key in group:
            details |= {f"Current{key}": group[key], f"Desired{key}": group[key]}
    if "KubernetesConfig" in group:
        details["KubernetesConfig"] = {
            f"{when}{key}": value for key, value in group["KubernetesConfig"].items() for when in ("Current", "Desired")
        }
    if "AutoPatchConfig" in group:
        patch = dict(group["AutoPatchConfig"])
        schedule = patch.pop("PatchSchedule", None)
        if schedule is not None:
            patch |= {"CurrentPatchSchedule": schedule, "DesiredPatchSchedule": schedule}
        details["AutoPatchConfig"] = patch
    return details


def _group_status(cluster: Cluster, name: str, target: int) -> str:
    nodes = cluster.of_group(name)
    settled = len(nodes) == target and all(node.status == "Running" for node in nodes)
    if cluster.status in ("Creating", "Deleting", "Failed"):
        return "InService" if settled and cluster.status == "Creating" else cluster.status
    if settled:
        return "InService"
    if cluster.status in ("Updating", "RollingBack"):
        return "Updating"
    return "Degraded"


def instance_status(node: Node) -> dict[str, str]:
    """The status structure of a node."""
    return {"Status": node.status, "Message": node.message} if node.message else {"Status": node.status}


def hostname(node: Node, region: str) -> str:
    return f"ip-{node.private_ip.replace('.', '-')}.{region}.compute.internal"


def node_summary(cluster: Cluster, node: Node, *, with_logical_id: bool) -> dict[str, Any]:
    """A node as ListClusterNodes shows it."""
    summary = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "InstanceType": instance_type(cluster, node.group),
        "LaunchTime": node.launched,
        "InstanceStatus": instance_status(node),
        "PrivateDnsHostname": hostname(node, cluster.region),
    }
    return summary | ({"NodeLogicalId": node.logical_id} if with_logical_id else {})


def node_details(cluster: Cluster, node: Node) -> dict[str, Any]:
    """A node as DescribeClusterNode shows it."""
    group = cluster.groups.get(node.group) or cluster.previous_groups.get(node.group, {})
    kept = ("LifeCycleConfig", "OverrideVpcConfig", "InstanceStorageConfigs", "NetworkInterface")
    details = {key: group[key] for key in kept if key in group}
    return details | {
        **node_summary(cluster, node, with_logical_id=True),
        "ThreadsPerCore": group.get("ThreadsPerCore", 1),
        "PrivatePrimaryIp": node.private_ip,
        "Placement": {"AvailabilityZone": node.zone},
        "CapacityType": "Spot" if "Spot" in group.get("CapacityRequirements", {}) else "OnDemand",
    }


def instance_type(cluster: Cluster, group_name: str) -> str:
    """The type of a group's instances; of several allowed types the first has priority."""
    group = cluster.groups.get(group_name) or cluster.previous_groups.get(group_name, {})
    chosen = group.get("InstanceType") or group.get("InstanceRequirements", {}).get("InstanceTypes", [""])[0]
    return str(chosen)


def describe(cluster: Cluster) -> dict[str, Any]:
    """A cluster as DescribeCluster shows it."""
    names = [*cluster.groups, *(name for name in cluster.leaving_groups if name not in cluster.groups)]
    answer = {
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ClusterStatus": cluster.status,
        "CreationTime": cluster.created,
        "InstanceGroups": [group_details(cluster, name) for name in names],
        **{key: cluster.settings[key] for key in CLUSTER_SETTINGS if key in cluster.settings},
    }
    if cluster.failure:
        answer["FailureMessage"] = cluster.failure
    if "AutoScaling" in cluster.settings:
        answer["AutoScaling"] = {**cluster.settings["AutoScaling"], "Status": "InService"}
    return answer
