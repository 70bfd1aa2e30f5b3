"""``holdfast events``: what happened, read from the cluster's CloudWatch log group, or from HyperPod on AWS."""

import json as json_format
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    Choice,
    Context,
    locate,
    parse_since,
    read_events,
    read_service_events,
)
from holdfast.cli.terminal import CommandError, console, error_console
from holdfast.cli.views import EventLine

POLL_S = 0.5
AWS_POLL_S = 5.0

_Shown = tuple[str, "EventLine | Text"]
"""An event as JSON, and as people read it."""


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as they happen.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may be repeated.")] = None,
    node: Annotated[str | None, typer.Option(help="Only of this instance id, or host name.")] = None,
    job: Annotated[str | None, typer.Option(help="Only of this job.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from then on: 2026-11-22T18:00, 30m, 2h, 1d.")
    ] = None,
    tail: Annotated[int | None, typer.Option(help="Only the newest so many.", min=0)] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """Print the cluster's events, oldest first."""
    since_ns = 0 if since is None else parse_since(since, now=datetime.now(UTC))
    choice = Choice(kinds=frozenset(kind or ()), node=node or "", job=job or "", since_ns=since_ns)
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if context.session.cloud == "aws":
        _refuse_what_hyperpod_does_not_tell(choice)
        name = context.session.cluster_name
        error_console.print(f"HyperPod's own events of {name}; Holdfast's are not shipped from AWS yet", style="dim")
        _print(lambda: _service(context, choice), follow=follow, as_json=json, tail=tail, poll_s=AWS_POLL_S)
    else:
        _print(lambda: _own(context, choice), follow=follow, as_json=json, tail=tail, poll_s=POLL_S)


def _own(context: Context, choice: Choice) -> "Iterable[_Shown]":
    found = read_events(context, since_ns=choice.since_ns)
    return [(event.to_json(), EventLine(event)) for event in choice.of(found)]


def _service(context: Context, choice: Choice) -> "Iterable[_Shown]":
    found = read_service_events(context, since_ns=choice.since_ns, node=choice.node)
    return [(json_format.dumps(asdict(event)), event.line()) for event in found]


def _refuse_what_hyperpod_does_not_tell(choice: Choice) -> None:
    given = [name for name, value in (("--kind", choice.kinds), ("--job", choice.job)) if value]
    if given:
        raise CommandError(
            f"got {' and '.join(given)}; on AWS there are HyperPod's own events only, which have neither kinds nor "
            "jobs; allowed there: --since, --node, --tail"
        )


def _print(
    read: "Callable[[], Iterable[_Shown]]", *, follow: bool, as_json: bool, tail: int | None, poll_s: float
) -> None:
    seen: set[str] = set()
    is_first = True
    while True:
        fresh: Sequence[_Shown] = [one for one in read() if one[0] not in seen]
        seen.update(line for line, _ in fresh)
        if is_first and tail is not None:
            fresh = fresh[max(len(fresh) - tail, 0) :]
        is_first = False
        for line, shown in fresh:
            if as_json:
                print(line, flush=True)
            else:
                console.print(shown, soft_wrap=not console.is_terminal)
        if not follow:
            if not seen:
                error_console.print("no events of this choice; all there are: holdfast events")
            return
        time.sleep(poll_s)
