"""
``holdfast up``: deploy an environment file.

For ``embedded`` environments it also starts and bootstraps the local cloud. Running it again restores the deployment,
also after a crash.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.definitions import complete_environment, judged_definition
from holdfast.cli.deployed import VARIABLE, Session, read_status, recorded
from holdfast.cli.deploying import (
    check_monitor,
    check_packages,
    check_system,
    deploy,
    install_command,
    install_packages,
    start_monitor,
    taken_down_on,
)
from holdfast.cli.rehearsal import rehearse_jobs
from holdfast.cli.submission import check_fits, check_job_file
from holdfast.cli.terminal import JSON, CommandError, Interrupted, console, print_json
from holdfast.cli.views import render_status
from holdfast.environments import environment_file
from holdfast.localcloud import from_environment


def up(
    environment: Annotated[
        str, typer.Argument(metavar="ENV", help="Name in environments/, or path.", autocompletion=complete_environment)
    ],
    rehearse: Annotated[
        list[Path] | None,
        typer.Option(help="Job file to rehearse once the cluster is in service; repeatable."),
    ] = None,
    prepare: Annotated[Path | None, typer.Option(help="Program that uploads data to the bucket first.")] = None,
    monitor: Annotated[
        Path | None,
        typer.Option(metavar="RULES", help="Start a local Prometheus with these alert rules."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Install missing system packages with apt-get.")] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Deploy an environment and wait until its cluster is in service."""
    path = environment_file(environment)
    check_packages()
    for file in rehearse or ():
        check_job_file(file)
    definition = judged_definition(path)
    for file in rehearse or ():
        check_fits(file, orchestrator=definition.orchestrator)
    local = from_environment()
    if monitor is not None:
        check_monitor(monitor, definition)
    embedded = definition.cloud == "embedded"
    if embedded:
        check_system()
        _install_missing(yes=yes)
    before = recorded(local.home)
    with local.held(verb="up") as home:
        begun_here = embedded and home.fresh
        with taken_down_on(BaseException, local, begun_here=begun_here), _naming_current(before, new=definition.name):
            context = deploy(definition, path=path, local=local)
            if monitor is not None:
                start_monitor(monitor, definition, local=local)
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
    if not json and before is not None and before.environment != definition.name:
        previous = before.environment
        console.print(f"current: {definition.name}; previous: {previous}, to return: holdfast use {previous}")
    of_shell = os.environ.get(VARIABLE)
    if not json and of_shell and of_shell != definition.name:
        console.print(f"this shell has {VARIABLE}={of_shell}, which takes precedence; to clear it: unset {VARIABLE}")


def _install_missing(*, yes: bool) -> None:
    """Install missing system packages, after a question on a terminal; whatever stays missing is refused later."""
    if not (command := install_command()):
        return
    if yes or (sys.stdin.isatty() and typer.confirm(f"system packages are missing; run: {command}")):
        install_packages()


@contextlib.contextmanager
def _naming_current(before: Session | None, *, new: str) -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        if before is None or before.environment == new:
            raise
        raise CommandError(f"{error}\ncurrent: {before.environment}, as before", exit_code=error.exit_code) from None
