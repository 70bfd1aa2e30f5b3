"""HyperPod's own events (ListClusterEvents): the only events of a cluster on AWS."""

from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text

from holdfast.cli.deployed.cluster import pages
from holdfast.cli.deployed.sessions import Context

PAGE = 100
COLOURS = {"Error": "bold red", "Warn": "yellow"}


@dataclass(frozen=True, kw_only=True)
class ServiceEvent:
    event_id: str
    time: str
    """ISO 8601, UTC."""
    level: str
    resource_type: str
    instance_group: str
    instance_id: str
    description: str

    @property
    def time_ns(self) -> int:
        return int(datetime.fromisoformat(self.time).timestamp()) * 1_000_000_000

    def line(self) -> Text:
        what = " ".join(part for part in (self.resource_type, self.instance_group, self.instance_id) if part)
        return Text.assemble(
            (self.time.replace("T", " ").rstrip("Z"), "dim"),
            "  ",
            (f"{self.level or 'Info':<5}", COLOURS.get(self.level, "")),
            f"  {what}  ",
            self.description,
        )


def read_service_events(context: Context, *, since_ns: int = 0, node: str = "") -> list[ServiceEvent]:
    """Events since a time, or of one instance, oldest first. Raises: AwsError."""
    asked: dict[str, object] = {
        "ClusterName": context.session.cluster_name,
        "SortBy": "EventTime",
        "SortOrder": "Ascending",
        "MaxResults": PAGE,
    }
    if since_ns:
        asked["EventTimeAfter"] = datetime.fromtimestamp(since_ns / 1e9, tz=UTC)
    if node:
        asked["NodeId"] = node
    return [
        ServiceEvent(
            event_id=event["EventId"],
            time=event["EventTime"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            level=event.get("EventLevel", ""),
            resource_type=event.get("ResourceType", ""),
            instance_group=event.get("InstanceGroupName", ""),
            instance_id=event.get("InstanceId", ""),
            description=event.get("Description", ""),
        )
        for event in pages(context, "sagemaker", "ListClusterEvents", items="Events", **asked)
    ]
