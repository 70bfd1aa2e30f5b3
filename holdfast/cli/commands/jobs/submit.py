from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployed import LONG_ENVIRONMENT, locate
from holdfast.cli.submission import (
    CommandWithArguments,
    SbatchArguments,
    arguments_after_dashes,
    check_fits,
    check_job_file,
    check_submission,
    prepare_data,
    submit_any,
)
from holdfast.cli.terminal import JSON, CommandError, console, print_json

DEFAULT_USER = "ubuntu"
SETTINGS = {"cls": CommandWithArguments, "context_settings": {"ignore_unknown_options": True}}


def submit(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="Slurm job file, or Kubernetes manifest (.yaml). Its folder is uploaded with it.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SBATCH OPTIONS] [-- ARGUMENTS]",
            help="Options of sbatch, such as --nodes=2; arguments of the job file after --. Or as sbatch has it: "
            "options before the file, arguments after it.",
        ),
    ] = None,
    prepare: Annotated[
        Path | None, typer.Option(help="Python program to run here first, with --bucket BUCKET.")
    ] = None,
    user: Annotated[str, typer.Option(help="User that owns a Slurm job.")] = DEFAULT_USER,
    submission: Annotated[
        str | None,
        typer.Option(
            envvar="HOLDFAST_SUBMISSION",
            help="Name of a run over several jobs, which share its run folders. Default: one run per job.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder to upload with a Slurm job; the job starts there. Default: the current one if the job file is "
            "below it and names files of it, else the job file's."
        ),
    ] = None,
    environment: Annotated[str | None, LONG_ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Submit a job to Slurm or Kubernetes."""
    name, given = SbatchArguments.around([str(file), *(words or ())], arguments=arguments_after_dashes(context))
    file = Path(name)
    check_job_file(file, folder=folder)
    check_submission(submission)
    session = locate(environment=environment)
    if session.orchestrator != "slurm" and (given != SbatchArguments() or user != DEFAULT_USER or folder is not None):
        raise CommandError("got options of Slurm for a cluster under Kubernetes; set them in the manifest instead")
    check_fits(file, orchestrator=session.orchestrator)
    if prepare is not None:
        prepare_data(session, program=prepare)
    job_id = submit_any(session, file=file, user=user, words=given, submission=submission, folder=folder)
    if json:
        print_json({"job_id": job_id or None})
    elif job_id:
        console.print(f"job {job_id}; watch with: holdfast events --follow, or: holdfast logs --job {job_id} --follow")
