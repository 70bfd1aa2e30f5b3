"""
``holdfast up``: from an environment file to a running cluster.

For an ``embedded`` environment it also starts the local cloud and bootstraps it; for one on AWS it only
deploys. Running it again brings everything back to what the file says, after a crash as well.
"""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.definitions import judged_definition
from holdfast.cli.deployed import load, read_status
from holdfast.cli.deploying import check_monitor, deploy, start_monitor, taken_down_on
from holdfast.cli.rehearsal import rehearse_jobs
from holdfast.cli.submission import check_fits, check_job_file
from holdfast.cli.terminal import Interrupted, console, print_json
from holdfast.cli.views import render_status
from holdfast.environments import environment_file
from holdfast.localcloud import from_environment


def up(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="Name in environments/, or a path.")],
    rehearse: Annotated[
        list[Path] | None,
        typer.Option(help="Job file to train with, and a node to break under it, once the cluster is up. Repeatable."),
    ] = None,
    prepare: Annotated[Path | None, typer.Option(help="Program that puts the job's data into the bucket.")] = None,
    monitor: Annotated[
        Path | None,
        typer.Option(
            metavar="RULES",
            help="Alert rules that a Prometheus beside the local nodes evaluates; it scrapes their health agents.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the final status as JSON.")] = False,
) -> None:
    """Deploy an environment and wait until its cluster is in service."""
    path = environment_file(environment)
    for file in rehearse or ():
        check_job_file(file)
    definition = judged_definition(path)
    for file in rehearse or ():
        check_fits(file, orchestrator=definition.orchestrator)
    local = from_environment()
    if monitor is not None:
        check_monitor(monitor, definition)
    begun_here = definition.cloud == "embedded" and not (local.home.exists() and any(local.home.iterdir()))
    with taken_down_on(BaseException, local, begun_here=begun_here):
        deploy(definition, path=path, local=local)
        if monitor is not None:
            start_monitor(monitor, definition, local=local)
    context = load()
    if rehearse:
        # A rehearsal that fails leaves the cluster up to look at; Ctrl-C means no to all of it.
        with taken_down_on(Interrupted, local, begun_here=begun_here):
            rehearse_jobs(context, files=rehearse, prepare=prepare)
    view = read_status(context)
    if json:
        print_json(view)
    elif not rehearse:
        console.print()
        console.print(render_status(view))
        kubectl = ', eval "$(holdfast env)" for kubectl' if view.orchestrator == "eks" else ""
        console.print(f"\nnext: holdfast submit FILE, holdfast status, holdfast down{kubectl}", style="dim")
