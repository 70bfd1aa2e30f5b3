"""``holdfast console``: a cluster on one live page, or a job or an incident as a file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.console import cluster_fleet, cluster_log, run_console, write_page, written_page
from holdfast.cli.definitions import complete_environment
from holdfast.cli.deployed import (
    CLUSTER,
    LOG,
    PROFILE,
    REGION,
    Context,
    by_name,
    complete_job,
    locate,
    name_problems,
    parse_since,
)
from holdfast.cli.terminal import OUTPUT, SINCE, CommandError, console
from holdfast.cli.views.incidents import LIST_PRICE, Clock, chosen, rows_of
from holdfast.localcloud.home import installed_version

WEEK = "7d"


def console_page(
    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]",
            help="Deployed environment, name in environments/, or path. Default: the current one.",
            show_default=False,
            autocompletion=complete_environment,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", help="Port on 127.0.0.1. Default: a free one.", min=0, max=65535)
    ] = 0,
    since: Annotated[str | None, SINCE] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a job or an incident as one file instead.", rich_help_panel=OUTPUT),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="Job of --html.", rich_help_panel=OUTPUT, autocompletion=complete_job)
    ] = None,
    incident: Annotated[
        str | None, typer.Option(metavar="ID", help="Incident of --html, or its beginning.", rich_help_panel=OUTPUT)
    ] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """
    Show nodes, jobs, incidents and events on one live web page.

    The page is read-only and on loopback; its address has a secret. End with Ctrl-C.
    """
    _refuse_a_mixture(html=html, job=job, incident=incident)
    since_ns = parse_since(since or WEEK, now=datetime.now(UTC))
    context = by_name(locate(environment=environment, cluster=cluster, region=region, profile=profile))
    if html is not None:
        write_page(html, lambda: _written(context, job=job, incident=incident), quiet=False)
        return
    if gone := run_console(context, port=port, since=since or WEEK, since_ns=since_ns, announce=_announce):
        console.print(f"{gone}: the console has ended")


def _refuse_a_mixture(*, html: Path | None, job: str | None, incident: str | None) -> None:
    if (html is None) != (job is None and incident is None) or (job is not None and incident is not None):
        raise CommandError("got --html, --job and --incident; allowed: --html FILE with one of --job and --incident")


def _announce(url: str) -> None:
    console.print(
        f"{url}\nkeep the address to yourself, its secret is all that a reader needs; end with Ctrl-C", soft_wrap=True
    )


def _written(context: Context, *, job: str | None, incident: str | None) -> str:
    logged, fleet = cluster_log(context), cluster_fleet(context, price=LIST_PRICE)
    found = rows_of(logged, fleet, stalls=Clock())
    name_problems(logged.problems, of=LOG)
    if incident is not None:
        found = chosen(found, incident, none="all events: holdfast events")
    return written_page(
        logged,
        found,
        job=job or "",
        made_at=datetime.now(UTC),
        version=installed_version(),
        price_note=fleet.price.note,
    )
