"""``holdfast rehearse``: a job, a broken node, and the way back."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, locate, refuse_on_aws
from holdfast.cli.rehearsal import Fault, rehearse_jobs
from holdfast.cli.submission import check_job_file
from holdfast.cli.terminal import print_json


def rehearse(
    files: Annotated[list[Path], typer.Argument(help="Job files or manifests to train with, one after the other.")],
    prepare: Annotated[Path | None, typer.Option(help="Program that puts the job's data into the bucket.")] = None,
    fault: Annotated[Fault, typer.Option(help="What to do to the node.")] = Fault.destroy,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the cluster's events of the rehearsal as JSON.")] = False,
) -> None:
    """Run each job, destroy a node under it after its first checkpoint, and report how it came back."""
    for file in files:
        check_job_file(file)
    context = locate(environment=environment)
    refuse_on_aws(context, what="holdfast rehearse")
    with context.local.held(verb="rehearse"):
        events = rehearse_jobs(context, files=files, prepare=prepare, fault=fault)
    if json:
        print_json([event.to_json() for event in events])
