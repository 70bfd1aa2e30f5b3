import json as json_format
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

import typer
from rich.text import Text

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    Choice,
    Context,
    ServiceEvent,
    complete_job,
    complete_node,
    locate,
    node_names,
    parse_since,
    read_service_events,
    stream_events,
)
from holdfast.cli.terminal import FILTER, FOLLOW, OUTPUT, SINCE, TAIL, CommandError, console, error_console
from holdfast.cli.views import EventLine

_Any = TypeVar("_Any")
POLL_S = 0.5
AWS_POLL_S = 5.0
FOLLOWED_BACK_NS = 2 * 3600 * 1_000_000_000
"""How far back ``--follow`` reads at each look: a clock that is an hour off, and what was shipped late."""


def events(
    follow: Annotated[bool, FOLLOW] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.", rich_help_panel=OUTPUT)
    ] = False,
    kind: Annotated[list[str] | None, typer.Option(help="Event kind; repeatable.", rich_help_panel=FILTER)] = None,
    node: Annotated[
        str | None, typer.Option(help="Instance id or host name.", rich_help_panel=FILTER, autocompletion=complete_node)
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="Job id.", rich_help_panel=FILTER, autocompletion=complete_job)
    ] = None,
    since: Annotated[str | None, SINCE] = None,
    tail: Annotated[int | None, TAIL] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """Print cluster events, oldest first."""
    since_ns = 0 if since is None else parse_since(since, now=datetime.now(UTC))
    choice = Choice(kinds=frozenset(kind or ()), node=node or "", job=job or "", since_ns=since_ns)
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    source: _HoldfastEvents | _ServiceEvents = _HoldfastEvents(context)
    poll_s = POLL_S
    if context.session.cloud == "aws":
        _refuse_what_hyperpod_does_not_tell(choice)
        name = context.session.cluster_name
        error_console.print(f"HyperPod's own events of {name}; Holdfast's are not shipped from AWS yet", style="dim")
        source, poll_s = _ServiceEvents(context), AWS_POLL_S
    names = node_names(context) if choice.node else frozenset[str]()
    if choice.node and choice.node not in names:
        known = ", ".join(sorted(names)) or "none yet"
        source.strange = f"got --node {choice.node}; allowed: {known}, or a node of an event"
    _print(source, choice, follow=follow, as_json=json, tail=tail, poll_s=poll_s)


class _ShownEvent(NamedTuple):
    """Event as JSON, and as a line."""

    time_ns: int
    json: Callable[[], str]
    view: "EventLine | Text"


class _HoldfastEvents:
    """Holdfast's events."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_read = False
        """The whole log, so that an unknown kind can be rejected."""
        self.strange = ""
        """Message of the error if the node of the choice has no event at any time. Empty: none"""

    def read(self, choice: Choice) -> Iterable[_ShownEvent]:
        found = stream_events(self._context, since_ns=0 if self.strange else choice.since_ns)
        if self.strange:
            found = _with_any(found, Choice(node=choice.node).matches, otherwise=self.strange)
        for event in filter(choice.matches, found) if self._has_read else choice.of(found):
            yield _ShownEvent(event.time_ns, event.to_json, EventLine(event))
        self._has_read, self.strange = True, ""


class _ServiceEvents:
    """HyperPod's events."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.strange = ""

    def read(self, choice: Choice) -> Iterable[_ShownEvent]:
        since_ns = 0 if self.strange else choice.since_ns
        found: Iterable[ServiceEvent] = read_service_events(self._context, since_ns=since_ns, node=choice.node)
        if self.strange:
            found = _with_any(found, lambda _: True, otherwise=self.strange)
        for event in found:
            if event.time_ns >= choice.since_ns:
                yield _ShownEvent(event.time_ns, partial(_json_of, event), event.line())
        self.strange = ""


def _with_any(events: Iterable[_Any], matches: Callable[[_Any], bool], *, otherwise: str) -> Iterator[_Any]:
    """Yield all. Raises: CommandError: none matches."""
    is_any = False
    for event in events:
        is_any = is_any or matches(event)
        yield event
    if not is_any:
        raise CommandError(otherwise)


def _json_of(event: ServiceEvent) -> str:
    return json_format.dumps(asdict(event))


def _refuse_what_hyperpod_does_not_tell(choice: Choice) -> None:
    given = [name for name, value in (("--kind", choice.kinds), ("--job", choice.job)) if value]
    if given:
        raise CommandError(
            f"got {' and '.join(given)}; on AWS there are HyperPod's own events only, which have neither kinds nor "
            "jobs; allowed there: --since, --node, --tail"
        )


class _RecentEvents:
    """Events of the last hours that were printed."""

    def __init__(self) -> None:
        self._in_order: deque[tuple[int, str]] = deque()
        self._lines: set[str] = set()
        self.newest_ns = 0

    def add(self, shown: _ShownEvent) -> bool:
        """Record an event; return False for a known one."""
        line = shown.json()
        if line in self._lines:
            return False
        self._lines.add(line)
        self._in_order.append((shown.time_ns, line))
        self.newest_ns = max(self.newest_ns, shown.time_ns)
        return True

    def forget(self, before_ns: int) -> None:
        while self._in_order and self._in_order[0][0] < before_ns:
            self._lines.discard(self._in_order.popleft()[1])


def _print(
    source: "_HoldfastEvents | _ServiceEvents",
    choice: Choice,
    *,
    follow: bool,
    as_json: bool,
    tail: int | None,
    poll_s: float,
) -> None:
    recent, show = _RecentEvents(), _printer(as_json=as_json)
    found, count = source.read(choice), 0
    while True:
        fresh: Iterable[_ShownEvent] = filter(recent.add, found) if follow else found
        for shown in fresh if tail is None else deque(fresh, maxlen=tail):
            count += 1
            show(shown)
        console.file.flush()
        if not follow:
            if not count and tail != 0:
                error_console.print("no events match; to see all of them: holdfast events")
            return
        tail = None
        since_ns = min(recent.newest_ns, time.time_ns()) - FOLLOWED_BACK_NS
        recent.forget(since_ns - 1_000_000_000)  # services know milliseconds, or seconds
        time.sleep(poll_s)
        found = source.read(replace(choice, since_ns=max(choice.since_ns, since_ns)))


def _printer(*, as_json: bool) -> Callable[[_ShownEvent], None]:
    is_terminal, file = console.is_terminal, console.file

    def show(shown: _ShownEvent) -> None:
        if as_json:
            print(shown.json())
        elif isinstance(shown.view, EventLine) and not is_terminal:
            print(shown.view.plain, file=file)
        else:
            console.print(shown.view, soft_wrap=not is_terminal)

    return show
