"""``holdfast incidents``: each fault from its first sign to full strength, from events alone."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.collectors import active_jobs
from holdfast.cli.console import cluster_fleet, cluster_log, write_page, written_page
from holdfast.cli.definitions import read_definition
from holdfast.cli.deployed import (
    CLUSTER,
    LOG,
    PROFILE,
    REGION,
    TARGET,
    AwsError,
    Context,
    by_name,
    locate,
    name_problems,
    parse_since,
)
from holdfast.cli.planning import events_of
from holdfast.cli.terminal import (
    JSON,
    OUTPUT,
    SINCE,
    CommandError,
    console,
    error_console,
    print_json,
)
from holdfast.cli.views.incidents import (
    LIST_PRICE,
    Clock,
    Fleet,
    IncidentRow,
    Price,
    chosen,
    incident_detail,
    incident_table,
    reported_note,
    rows_of,
)
from holdfast.environments import environment_file
from holdfast.localcloud.home import installed_version
from holdfast_common import Event, Incident

ENVIRONMENT = typer.Option(
    "--environment",
    "-e",
    metavar="ENV",
    help="Name in environments/, or path; with --events it defines the instance types.",
    rich_help_panel=TARGET,
)


def incidents(
    incident: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Incident id or its beginning: show this one in detail.")
    ] = None,
    json: Annotated[bool, JSON] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with bars and plots, too.", rich_help_panel=OUTPUT)
    ] = None,
    events: Annotated[
        Path | None, typer.Option(help="Event file (JSON lines) instead of a cluster.", rich_help_panel=TARGET)
    ] = None,
    since: Annotated[str | None, SINCE] = None,
    price: Annotated[str, typer.Option(help="Dollars per instance-hour, or an offer of the price list.")] = LIST_PRICE,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """Show faults: detection, repair, lost time and cost."""
    since_ns = 0 if since is None else parse_since(since, now=datetime.now(UTC))
    if events is not None:
        _refuse_two_sources(cluster=cluster, region=region, profile=profile)
        logged = events_of(events)
        fleet = _described(environment, price=price)
        stalls = Clock()
    else:
        context = by_name(locate(environment=environment, cluster=cluster, region=region, profile=profile))
        fleet = cluster_fleet(context, price=price)
        logged = cluster_log(context)
        stalls = Clock(now_ns=time.time_ns(), runs=functools.partial(_runs, context))
    found = [one for one in rows_of(logged, fleet, stalls=stalls) if one[0].start_ns >= since_ns]
    name_problems(logged.problems, of=LOG if events is None else str(events))
    if incident is not None:
        found = chosen(found, incident, none="all events: holdfast events")
    rows = [row for _, row in found]
    if json:
        print_json([dataclasses.asdict(row) for row in rows])
    elif incident is not None:
        for row in rows:
            console.print(incident_detail(row, price_note=fleet.price.note))
    elif rows:
        console.print(incident_table(rows))
        if remark := reported_note(rows):
            console.print(remark, style="dim")
    else:
        error_console.print("no incidents" if since is None else f"no incidents since {since}")
    if html is not None:
        write_page(html, lambda: _page(found, logged, fleet), quiet=json)


def _runs(context: Context, job: str) -> bool:
    """Return True for a job that runs now; False if the orchestrator does not answer."""
    with contextlib.suppress(CommandError, AwsError):
        return any(job == one.partition("_")[0] for one in active_jobs(context))
    return False


def _refuse_two_sources(**given: str | None) -> None:
    named = [f"--{name}" for name, value in given.items() if value is not None]
    if named:
        raise CommandError(f"got --events and {' and '.join(named)}; allowed: --events without a cluster")


def _described(environment: str | None, *, price: str) -> Fleet:
    if environment is None:
        return Fleet(price=Price.of(price, region=""))
    definition = read_definition(environment_file(environment))
    groups = {one.name: one.instance_type for one in definition.cluster.instance_groups if one.instance_type}
    return Fleet(type_of_group=groups, price=Price.of(price, region=definition.region))


def _page(found: Sequence[tuple[Incident, IncidentRow]], logged: Iterable[Event], fleet: Fleet) -> str:
    note = fleet.price.note if any(row.cost_usd is not None for _, row in found) else ""
    return written_page(logged, found, made_at=datetime.now(UTC), version=installed_version(), price_note=note)
