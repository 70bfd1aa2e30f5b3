"""What a stack has on AWS and not on this machine, as the events of the embedded CloudFormation say it."""

from collections.abc import Iterable, Mapping
from typing import Any

FINISHED = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def not_here(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """
    A line for each resource that was made without something, in the order of the lines.

    Args:
        events: All of a stack, newest first, as DescribeStackEvents gives them. The last of a resource counts: what was
            left out once and is there by now is not told.
    """
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
