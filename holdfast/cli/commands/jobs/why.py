"""``holdfast why``: the reason why a job stands still, crawls or waits."""

import time
from typing import Annotated

import typer

from holdfast.cli.collectors import active_jobs, collect
from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    check_job_id,
    complete_job,
    locate,
)
from holdfast.cli.diagnosis import diagnose
from holdfast.cli.terminal import JSON, CommandError, console, error_console, print_json
from holdfast.cli.views import render_diagnosis


def why(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="Job as holdfast jobs prints it. Default: the newest running one, else the newest pending one.",
            autocompletion=complete_job,
        ),
    ] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Show why a job stands still, crawls or waits.

    Reads launchers, processes, Slurm or Kubernetes, the output and events, and changes nothing.
    Exits with 1 if a cause is named.
    """
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if context.orchestrator == "slurm" and job is not None:
        check_job_id(job)
    if job is None:
        going_on = active_jobs(context)
        if not going_on:
            raise CommandError("no job runs or waits; for an ended one: holdfast why JOB; to list jobs: holdfast jobs")
        job, *others = going_on
        if others:
            error_console.print(f"job {job}; other jobs that run or wait: {', '.join(others)}", style="dim")
    found = diagnose(collect(context, job=job), now_s=time.time())
    if json:
        print_json(found)
    else:
        console.print(render_diagnosis(found))
    if found.culprits:
        raise typer.Exit(1)
