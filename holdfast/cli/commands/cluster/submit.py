"""``holdfast submit``: a job file, its folder and its options into the queue."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployed import LONG_ENVIRONMENT, locate, refuse_on_aws
from holdfast.cli.submission import (
    Words,
    arguments_after_dashes,
    check_fits,
    check_job_file,
    check_submission,
    prepare_data,
    submit_any,
)
from holdfast.cli.terminal import CommandError, console, print_json

DEFAULT_USER = "ubuntu"


def submit(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="Slurm job file, or manifest of Kubernetes (.yaml); its folder travels with it.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SBATCH OPTIONS] [-- ARGUMENTS]",
            help="Options of sbatch, such as --nodes=2, and after -- what the job file gets as arguments.",
        ),
    ] = None,
    prepare: Annotated[
        Path | None, typer.Option(help="Python program to run here first, with --bucket <the data bucket>.")
    ] = None,
    user: Annotated[str, typer.Option(help="Account that owns a job of Slurm.")] = DEFAULT_USER,
    submission: Annotated[
        str | None,
        typer.Option(
            envvar="HOLDFAST_SUBMISSION",
            help="Name of a run that goes on over several jobs: those of one name share run folders. "
            "Default: each job has its own.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="What travels with a job of Slurm, and where it begins. Default: the job file's folder."),
    ] = None,
    environment: Annotated[str | None, LONG_ENVIRONMENT] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the job id as JSON.")] = False,
) -> None:
    """Submit a job to the cluster's Slurm or Kubernetes."""
    check_job_file(file, folder=folder)
    check_submission(submission)
    given = Words.parse(words or [], arguments=arguments_after_dashes(context))
    session = locate(environment=environment)
    if session.orchestrator == "slurm":
        refuse_on_aws(session, what="holdfast submit")
    elif given != Words() or user != DEFAULT_USER or folder is not None:
        raise CommandError("got options of Slurm's jobs for a cluster under Kubernetes; say it in the manifest instead")
    check_fits(file, orchestrator=session.orchestrator)
    if prepare is not None:
        prepare_data(session, program=prepare)
    job_id = submit_any(session, file=file, user=user, words=given, submission=submission, folder=folder)
    if json:
        print_json({"job_id": job_id})
    else:
        console.print(f"job {job_id}; watch with: holdfast events --follow, or: holdfast logs --job {job_id} --follow")
