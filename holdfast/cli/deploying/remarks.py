"""Parts of a stack that exist on AWS only, from the events of the embedded CloudFormation."""

from collections.abc import Iterable, Mapping
from typing import Any

FINISHED = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def not_here(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sorted line for each resource that was made without something."""
    last: dict[str, Mapping[str, Any]] = {}
    for event in events:
        last.setdefault(event["LogicalResourceId"], event)
    return sorted(
        str(event["ResourceStatusReason"])
        for event in last.values()
        if event["ResourceStatus"] in FINISHED
        and event["ResourceType"] != "AWS::CloudFormation::Stack"
        and event.get("ResourceStatusReason")
    )
