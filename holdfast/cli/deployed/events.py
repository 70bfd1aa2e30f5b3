"""The event log of a cluster, read and written."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.sessions import Context

if TYPE_CHECKING:
    from holdfast_common import Event


EVENT_PAGE = 10_000


def read_events(context: Context, *, since_ns: int = 0) -> "list[Event]":
    """Every event of the cluster since ``since_ns``, in time order."""
    from holdfast_common import events_log_group, parse_events

    lines: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = context.ask(
            "logs",
            "FilterLogEvents",
            logGroupName=events_log_group(context.session.cluster_name),
            startTime=since_ns // 1_000_000,
            limit=EVENT_PAGE,
            **token,
        )
        lines += [entry["message"] for entry in page["events"]]
        if not page.get("nextToken"):
            break
        token = {"nextToken": page["nextToken"]}
    parsed = parse_events(lines)
    if parsed.problems:
        _tell_of_strangers(len(parsed.problems), parsed.problems[0])
    return sorted(parsed.events, key=lambda event: event.time_ns)


_told_of_strangers: list[str] = []


def _tell_of_strangers(count: int, first: str) -> None:
    """Any user of a node can write lines that are no events: said once, they end nothing."""
    from holdfast.cli.terminal import error_console

    if not _told_of_strangers:
        _told_of_strangers.append(first)
        error_console.print(f"holdfast: {count} lines of the event log are no events; the first: {first}", markup=False)


def record_event(
    context: Context,
    *,
    kind: str,
    node: str = "",
    job: str = "",
    fault: str = "",
    time_ns: int | None = None,
    detail: Mapping[str, str | int] | None = None,
) -> None:
    """Write an event of the command line's own into the cluster's event log; ``time_ns`` as it is now by default."""
    from holdfast_common import Event, events_log_group

    event = Event(
        time_ns=time.time_ns() if time_ns is None else time_ns,
        source="cli",
        cluster=context.session.cluster_name,
        node=node,
        job=job,
        kind=kind,
        fault=fault,
        detail=detail or {},
    )
    group = events_log_group(context.session.cluster_name)
    try:
        context.ask("logs", "CreateLogStream", logGroupName=group, logStreamName="cli")
    except AwsError as error:
        if error.code != "ResourceAlreadyExistsException":
            raise
    context.ask(
        "logs",
        "PutLogEvents",
        logGroupName=group,
        logStreamName="cli",
        logEvents=[{"timestamp": event.time_ns // 1_000_000, "message": event.to_json()}],
    )
