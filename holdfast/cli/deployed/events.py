"""Event log of a cluster: read and write."""

import bisect
import time
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import error_console, temporary_file

if TYPE_CHECKING:
    from holdfast_common import Event, Problems, StoredEvents


EVENT_PAGE = 10_000
LOG = "the event log"
_TIME = attrgetter("time_ns")


def read_events(context: Context, *, since_ns: int = 0) -> "list[Event]":
    """All events since ``since_ns`` in time order, without those whose source does not own their stream."""
    return list(stream_events(context, since_ns=since_ns))


def stream_events(context: Context, *, since_ns: int = 0, most: int = EVENT_PAGE) -> "Iterator[Event]":
    """Yield the same events in pages of ``most``; pages are in time order, to the millisecond."""
    from holdfast_common import EventError, Problems

    held: list[Event] = []
    problems, lines = Problems(count=0, first=""), 0
    for page in _pages(context, since_ns=since_ns, most=most):
        for entry in page:
            lines += 1
            try:
                held.append(_event_of(entry))
            except EventError as error:
                problems = Problems(problems.count + 1, problems.first or f"line {lines}: {error}")
        held.sort(key=_TIME)
        sure_ns = page[-1].get("timestamp", 0) * 1_000_000 if page else 0
        sure = bisect.bisect_left(held, sure_ns, key=_TIME)
        yield from held[:sure]
        del held[:sure]
    yield from held
    name_problems(problems, of=LOG)


def _event_of(entry: dict[str, Any]) -> "Event":
    """Parse a line. Raises: EventError: no event, or one of a source that does not own the stream."""
    from holdfast_common import Event, EventError, is_of_stream

    event, stream = Event.from_json(entry["message"]), entry["logStreamName"]
    if not is_of_stream(event, stream):
        raise EventError(f"stream {stream}: of a source that does not write there")
    return event


def stored_events(context: Context) -> "StoredEvents":
    """Store the events in an unnamed temporary file. Raises: CommandError: it cannot be written."""
    return stored(_lines(context))


def stored(lines: Iterable[bytes]) -> "StoredEvents":
    """Store lines that can be read only once. Raises: CommandError: they cannot be stored."""
    from holdfast_common import StoredEvents

    file, _ = temporary_file(lambda file: file.writelines(lines))
    return StoredEvents(file)


def _lines(context: Context) -> Iterator[bytes]:
    from holdfast_common import EventError

    for page in _pages(context, since_ns=0):
        for entry in page:
            try:
                line = _event_of(entry).to_json()
            except EventError as error:
                line = f"{error}"
            yield line.replace("\n", " ").encode("utf-8", "surrogatepass") + b"\n"


def _pages(context: Context, *, since_ns: int, most: int = EVENT_PAGE) -> Iterator[list[dict[str, Any]]]:
    from holdfast_common import events_log_group

    token: dict[str, str] = {}
    while True:
        page = context.ask(
            "logs",
            "FilterLogEvents",
            logGroupName=events_log_group(context.session.cluster_name),
            startTime=since_ns // 1_000_000,
            limit=most,
            interleaved=True,  # by time, as AWS does in any case
            **token,
        )
        yield page["events"]
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


_named: set[str] = set()


def name_problems(problems: "Problems | None", *, of: str) -> None:
    """Report invalid lines once. Any user of a node can write them, and a dying node leaves a torn line."""
    if problems is not None and problems.count and of not in _named:
        _named.add(of)
        lines = "1 line" if problems.count == 1 else f"{problems.count:,} lines"
        error_console.print(
            f"holdfast: {lines} of {of}: no event, set aside; the first: {problems.first}", markup=False
        )


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
    """Write an event of the command line into the cluster's event log. Default of ``time_ns``: now."""
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
