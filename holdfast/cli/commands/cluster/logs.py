import json as json_format
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from holdfast.cli.deployed import (
    CLUSTER,
    ENVIRONMENT,
    JOB_ID,
    PROFILE,
    REGION,
    Context,
    LineChoice,
    OutputFiles,
    check_job_id,
    check_kubernetes_job,
    complete_job,
    complete_node,
    heading,
    job_outcome,
    job_output,
    kubernetes_outcome,
    kubernetes_output,
    lifecycle_stream,
    lifecycle_streams,
    locate,
    parse_since,
    stream_lines,
    task_of,
    written_so_far,
)
from holdfast.cli.terminal import FILTER, FOLLOW, OUTPUT, SINCE, TAIL, console, error_console, print_json, print_output

POLL_S = 0.5


def logs(
    node: Annotated[
        str | None,
        typer.Argument(
            help="Instance id, host name or address; also the number of a Slurm job. Default: list the log streams.",
            autocompletion=complete_node,
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Print the output of this job.", autocompletion=complete_job)] = None,
    tail: Annotated[int | None, TAIL] = None,
    since: Annotated[str | None, SINCE] = None,
    grep: Annotated[
        str | None, typer.Option(help="Regular expression that lines must match.", rich_help_panel=FILTER)
    ] = None,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    follow: Annotated[bool, FOLLOW] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --follow one string per line.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """
    Print the lifecycle log of a node, or the output of a job.

    Logs of removed nodes are kept.
    """
    since_ns = None if since is None else parse_since(since, now=datetime.now(UTC))
    choice = LineChoice.parse(tail=tail, since_ns=since_ns, grep=grep)
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if job is None and node is not None and context.orchestrator == "slurm" and JOB_ID.fullmatch(node):
        job = node
    if job is not None and context.orchestrator == "eks":
        check_kubernetes_job(job)
        _print_pods(context, job=job, choice=choice, follow=follow, json=json)
    elif job is not None:
        check_job_id(job)
        if job.isdecimal() and (task := task_of(context, job=job)):
            error_console.print(f"job {job} is task {task}")
        if follow:
            _follow(
                lambda: written_so_far(context, job=job),
                choice=choice,
                as_json=json,
                is_over=lambda: bool(job_outcome(context, job=job)),
            )
        else:
            _print(job_output(context, job=job, choice=choice), as_json=json)
    elif node is not None:
        group, stream = lifecycle_stream(context, node=node)
        if follow:
            # Their times are CloudWatch's, so what is too old is not read into the lines.
            unaged = LineChoice(tail=choice.tail, pattern=choice.pattern)
            aged = LineChoice(since_ns=choice.since_ns)
            _follow(
                lambda: [(stream, aged.of_timed(stream_lines(context, group=group, stream=stream)))],
                choice=unaged,
                as_json=json,
            )
        else:
            _print(choice.of_timed(stream_lines(context, group=group, stream=stream)), as_json=json)
    else:
        streams = [{"log_group": group, "log_stream": stream} for group, stream in lifecycle_streams(context)]
        if json:
            print_json(streams)
        for entry in [] if json else streams:
            console.print(f"{entry['log_group']}  {entry['log_stream']}")


def _print_pods(context: Context, *, job: str, choice: LineChoice, follow: bool, json: bool) -> None:
    # The API server knows the time of each line; the lines do not have it.
    aged = LineChoice(tail=choice.tail, pattern=choice.pattern)
    if follow:
        _follow(
            lambda: kubernetes_output(context, job=job, since_ns=choice.since_ns),
            choice=aged,
            as_json=json,
            is_over=lambda: bool(kubernetes_outcome(context, job=job)),
        )
        return
    files = [(pod, aged.of(log)) for pod, log in kubernetes_output(context, job=job, since_ns=choice.since_ns)]
    lines = files[0][1] if len(files) == 1 else [line for pod, log in files for line in (heading(pod), *log)]
    _print(lines, as_json=json)


def _follow(
    read: Callable[[], OutputFiles],
    *,
    choice: LineChoice,
    as_json: bool,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    printed: dict[str, int] = {}
    last = ""
    while True:
        # Asked before the last look, which so has what was written last.
        ends = is_over()
        files = read()
        for path, lines in files:
            # What was there at first is chosen from; what comes later is young, and there is no end to cut off.
            fresh = choice.matching(lines[printed[path] :]) if path in printed else choice.of(lines)
            printed[path] = len(lines)
            title = [heading(path)] if fresh and len(files) > 1 and path != last else []
            last = path if fresh else last
            for line in (*title, *fresh):
                print_output(json_format.dumps(line) if as_json else line)
        if ends:
            return
        time.sleep(POLL_S)


def _print(lines: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(lines)
    for line in [] if as_json else lines:
        print_output(line)
