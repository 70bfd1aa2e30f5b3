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
    """Every event of the cluster since ``since_ns``, in time order; none that its stream does not speak for."""
    from holdfast_common import events_log_group, is_of_stream, parse_events

    lines: dict[str, list[str]] = {}
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
        for entry in page["events"]:
            lines.setdefault(entry["logStreamName"], []).append(entry["message"])
        if not page.get("nextToken"):
            break
        token = {"nextToken": page["nextToken"]}
    found: list[Event] = []
    problems: list[str] = []
    for stream, of_stream in lines.items():
        parsed = parse_events(of_stream)
        own = [event for event in parsed.events if is_of_stream(event, stream)]
        foreign = len(parsed.events) - len(own)
        found += own
        problems += [*parsed.problems, *[f"stream {stream}: of a source that does not write there"] * foreign]
    if problems:
        _tell_of_strangers(len(problems), problems[0])
    return sorted(found, key=lambda event: event.time_ns)


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
