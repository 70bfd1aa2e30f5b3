"""``holdfast init``: a repository of one's own, from flags, or from questions on a terminal."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.repository import Answers, refusal, repository_files, write_repository
from holdfast.cli.terminal import CommandError, console, error_console, sudo_command
from holdfast.localcloud.home import installed_version

QUESTIONS = {
    "name": "Name of the environment on AWS",
    "account": "AWS account",
    "region": "AWS region",
    "orchestrator": "Orchestrator (slurm or eks)",
}


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the repository. Default: the current one.")] = Path(),
    name: Annotated[
        str | None, typer.Option(help="Name of the environment on AWS. Default: production.", metavar="NAME")
    ] = None,
    account: Annotated[
        str | None, typer.Option(help="AWS account of 12 digits. Default: a placeholder.", metavar="ACCOUNT")
    ] = None,
    region: Annotated[str | None, typer.Option(help="AWS region. Default: us-west-2.", metavar="REGION")] = None,
    orchestrator: Annotated[
        str | None, typer.Option(help="Orchestrator: slurm or eks. Default: slurm.", metavar="ORCHESTRATOR")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Use defaults instead of asking.")] = False,
) -> None:
    """
    Write a repository: environments, CDK app, job, tests, CI.

    Asks for what no option gives, on a terminal. Nothing is overwritten.
    """
    given = {"name": name, "account": account, "region": region, "orchestrator": orchestrator}
    refused = [problem for field, value in given.items() if value is not None and (problem := refusal(field, value))]
    if refused:
        raise CommandError("\n".join(refused))
    asks = sys.stdin.isatty() and not yes
    defaults = Answers()
    chosen: dict[str, Any] = {field: value for field, value in given.items() if value}
    chosen |= {field: _ask(field, getattr(defaults, field)) for field in given if asks and field not in chosen}
    answers = replace(defaults, **chosen)
    files = repository_files(answers, version=installed_version())
    write_repository(folder, files)
    for path in sorted(files):
        console.print(folder / path, soft_wrap=True)
    up = sudo_command((str(Path(sys.executable).with_name("holdfast")), "up", "local"))
    enter = "" if folder == Path() else f"cd {folder} && "
    console.print(f"\nnext: {enter}holdfast check {answers.name}, {up}; README.md has the rest", soft_wrap=True)


def _ask(field: str, default: str) -> str:
    while True:
        value = str(typer.prompt(QUESTIONS[field], default=default)).strip()
        if not (problem := refusal(field, value)):
            return value
        error_console.print(problem)
