import time
from typing import Annotated

import typer

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    Context,
    JobRow,
    cancel_workloads,
    check_kubernetes_job,
    complete_job,
    controller_hostname,
    expand_job_id,
    known_jobs,
    known_workloads,
    locate,
    rows,
    run,
    workload_rows,
)
from holdfast.cli.kubernetes import Workload
from holdfast.cli.slurm import JobRecord, newest_first
from holdfast.cli.terminal import FILTER, JSON, CommandError, console, print_json
from holdfast.cli.views import as_dict, folded, job_history

ENDS_WITHIN_S = 30.0
POLL_S = 0.5
_IDS = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB]...", help="Jobs to list. Default: all.", autocompletion=complete_job),
]


def jobs(
    job: _IDS = None,
    days: Annotated[int, typer.Option(help="Days to look back.", min=1, max=3650, rich_help_panel=FILTER)] = 7,
    failed: Annotated[bool, typer.Option("--failed", help="Only failed jobs.", rich_help_panel=FILTER)] = False,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    List current and past jobs.

    Running jobs come first, then failed ones with the reason. A named array job has a row for each task.
    """
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if context.orchestrator == "eks":
        found = workload_rows(context, _workloads(context, job or [], days=days, failed=failed))
    else:
        found = _of_slurm(context, job or [], days=days, failed=failed)
    if json:
        print_json([as_dict(one) for one in found])
    elif not found:
        console.print(f"no {'failed ' if failed else ''}jobs in the last {days} days")
    else:
        console.print(job_history(found if job else folded(found)))


def _of_slurm(context: Context, job: list[str], *, days: int, failed: bool) -> list[JobRow]:
    requested = [each for one in job for each in expand_job_id(one)]
    records = known_jobs(context, jobs=requested, since=f"now-{days}days")
    missing = [one for one in requested if not any(record.is_of(one) for record in records)]
    if missing:
        raise CommandError(f"Slurm has no job {', '.join(missing)}; to list jobs: holdfast jobs")
    return rows(context, newest_first(one for one in records if one.has_failed or not failed))


def _workloads(context: Context, job: list[str], *, days: int = 3650, failed: bool = False) -> list[Workload]:
    requested = {check_kubernetes_job(one) for one in job}
    known = known_workloads(context)
    missing = sorted(str(one) for one in requested - {one.job for one in known})
    if missing:
        raise CommandError(f"Kubernetes has no job {', '.join(missing)}; to list jobs: holdfast jobs")
    since_s = time.time() - days * 86400
    return [
        one
        for one in known
        if (not requested or one.job in requested)
        and (one.state == "Failed" or not failed)
        and (one.ended_s is None or one.ended_s > since_s)
    ]


def cancel(
    job: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...",
            help="Job as holdfast jobs prints it: NUMBER, NUMBER_TASK, NUMBER+PART, or a name.",
            autocompletion=complete_job,
        ),
    ],
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Cancel running and pending jobs."""
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if context.orchestrator == "eks":
        _cancel_workloads(context, job, json=json)
        return
    requested = list(dict.fromkeys(each for one in job for each in expand_job_id(one)))
    before = _states(context, requested)
    missing = [one for one in requested if one not in before]
    if missing:
        raise CommandError(f"Slurm has no job {', '.join(missing)}; nothing was cancelled; to list jobs: holdfast jobs")
    going_on = [one for one in requested if any(not record.has_ended for record in before[one])]
    if going_on:
        answer = run(context, node=controller_hostname(context), argv=["scancel", *going_on])
        if answer.returncode:
            raise CommandError(f"scancel: {answer.stderr.strip()}")
    deadline = time.monotonic() + ENDS_WITHIN_S
    after = before
    while going_on and time.monotonic() < deadline:
        after = _states(context, requested)
        if all(record.has_ended for one in requested for record in after.get(one, [])):
            break
        time.sleep(POLL_S)
    # A task that has never started leaves nothing behind.
    states = {one: sorted({record.state for record in after.get(one, [])}) or ["CANCELLED"] for one in requested}
    if json:
        print_json({one: "/".join(names) for one, names in states.items()})
        return
    for one in requested:
        note = "" if one in going_on else ", unchanged"
        console.print(f"job {one} is {'/'.join(states[one])}{note}")


def _cancel_workloads(context: Context, job: list[str], *, json: bool) -> None:
    found = _workloads(context, job)
    cancel_workloads(context, found)
    if json:
        print_json({str(one.job): "deleted" for one in found})
        return
    for one in found:
        note = f", was {one.state}" if one.has_ended else ""
        console.print(f"job {one.job} is deleted ({one.kinds}){note}")


def _states(context: Context, requested: list[str]) -> dict[str, list[JobRecord]]:
    records = known_jobs(context, jobs=requested)
    found = {one: [record for record in records if record.is_of(one)] for one in requested}
    return {one: of for one, of in found.items() if of}
