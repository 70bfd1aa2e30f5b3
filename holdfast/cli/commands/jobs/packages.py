from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, locate, require_local
from holdfast.cli.submission import CommandWithArguments, arguments_after_dashes, check_requirements, make_environment
from holdfast.cli.terminal import JSON, CommandError, console, print_json, step

SETTINGS = {"cls": CommandWithArguments}


def packages(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE [-- PIP OPTIONS]", help="Requirements file of pip.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the environment. Default: that of the folder of FILE.")
    ] = None,
    user: Annotated[str, typer.Option(help="User that owns it.")] = "ubuntu",
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Create a Python environment for jobs.

    Installs a requirements file on the shared file system of the local cluster.
    """
    chosen = check_requirements(file, name=name)
    session = locate(environment=environment)
    require_local(session, what="holdfast packages")
    if session.orchestrator != "slurm":
        raise CommandError("got a cluster under Kubernetes; allowed: Slurm; pods have the packages of their image")
    with step(f"make the environment {chosen}"):
        made = make_environment(session, file=file, name=chosen, user=user, pip=arguments_after_dashes(context) or ())
    if json:
        print_json(asdict(made))
        return
    console.print(
        f"{made.path} has Python {made.python} and {len(made.packages)} packages, on all nodes; "
        f"in a job file: source {made.path}/bin/activate",
        soft_wrap=True,
        highlight=False,
    )
