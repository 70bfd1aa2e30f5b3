from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, locate, require_local
from holdfast.cli.rehearsal import Fault, rehearse_jobs
from holdfast.cli.submission import check_job_file
from holdfast.cli.terminal import JSON, print_json


def rehearse(
    files: Annotated[list[Path], typer.Argument(help="Job files or manifests, run one after the other.")],
    prepare: Annotated[Path | None, typer.Option(help="Program that uploads data to the bucket first.")] = None,
    fault: Annotated[Fault, typer.Option(help="Fault of the node.")] = Fault.destroy,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Break a node under a training job and report the recovery.

    The node fails after the first checkpoint of each job.
    An elastic job is resized instead: two nodes fewer, then all nodes again.
    """
    for file in files:
        check_job_file(file)
    context = locate(environment=environment)
    require_local(context, what="holdfast rehearse")
    with context.local.held(verb="rehearse"):
        events = rehearse_jobs(context, files=files, prepare=prepare, fault=fault)
    if json:
        print_json([event.to_json() for event in events])
