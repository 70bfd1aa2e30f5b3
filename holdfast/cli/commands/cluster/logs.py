"""``holdfast logs``: lifecycle scripts and jobs, as far as they have written."""

import json as json_format
import time
from collections.abc import Callable
from typing import Annotated

import typer

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    PROFILE,
    REGION,
    Context,
    OutputFiles,
    check_job_id,
    check_kubernetes_job,
    heading,
    job_outcome,
    job_output,
    kubernetes_outcome,
    kubernetes_output,
    lifecycle_stream,
    lifecycle_streams,
    locate,
    refuse_on_aws,
    stream_lines,
    written_so_far,
)
from holdfast.cli.terminal import console, print_json

POLL_S = 0.5


def logs(
    node: Annotated[str | None, typer.Argument(help="Instance id. Default: list the streams there are.")] = None,
    job: Annotated[str | None, typer.Option(help="Print the output of this job instead.")] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing as it grows; a job's until it ends.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print lines, or streams, as JSON; with --follow a string a line.")
    ] = False,
) -> None:
    """Print lifecycle logs of nodes (also of nodes that are gone) or the output of a job."""
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if job is not None and context.orchestrator == "eks":
        check_kubernetes_job(job)
        _print_pods(context, job=job, follow=follow, json=json)
    elif job is not None:
        check_job_id(job)
        refuse_on_aws(context, what="reading the output of a job")
        if follow:
            _follow(
                lambda: written_so_far(context, job=job),
                as_json=json,
                is_over=lambda: bool(job_outcome(context, job=job)),
            )
        else:
            _print(job_output(context, job=job), as_json=json)
    elif node is not None:
        group, stream = lifecycle_stream(context, node=node)
        if follow:
            _follow(lambda: [(stream, stream_lines(context, group=group, stream=stream))], as_json=json)
        else:
            _print(stream_lines(context, group=group, stream=stream), as_json=json)
    else:
        streams = [{"log_group": group, "log_stream": stream} for group, stream in lifecycle_streams(context)]
        if json:
            print_json(streams)
        for entry in [] if json else streams:
            console.print(f"{entry['log_group']}  {entry['log_stream']}")


def _print_pods(context: Context, *, job: str, follow: bool, json: bool) -> None:
    if follow:
        _follow(
            lambda: kubernetes_output(context, job=job),
            as_json=json,
            is_over=lambda: bool(kubernetes_outcome(context, job=job)),
        )
        return
    files = kubernetes_output(context, job=job)
    lines = files[0][1] if len(files) == 1 else [line for pod, said in files for line in (heading(pod), *said)]
    _print(lines, as_json=json)


def _follow(read: Callable[[], OutputFiles], *, as_json: bool, is_over: Callable[[], bool] = lambda: False) -> None:
    """Print what is new in each file, under its name where there are several and it is another than before."""
    printed: dict[str, int] = {}
    last = ""
    while True:
        # Asked before the last look, which so has what was written last.
        ends = is_over()
        files = read()
        for path, lines in files:
            fresh = lines[printed.get(path, 0) :]
            printed[path] = len(lines)
            title = [heading(path)] if fresh and len(files) > 1 and path != last else []
            last = path if fresh else last
            for line in (*title, *fresh):
                print(json_format.dumps(line) if as_json else line, flush=True)
        if ends:
            return
        time.sleep(POLL_S)


def _print(lines: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(lines)
    for line in [] if as_json else lines:
        print(line)
