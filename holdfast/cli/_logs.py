"""``holdfast logs``: the lifecycle log of a node from CloudWatch, or the output of a job."""

import json as json_format
import time
from collections.abc import Callable
from typing import Annotated

import typer

from holdfast.cli._errors import CommandError
from holdfast.cli._output import console, print_json
from holdfast.cli._session import Context
from holdfast.cli.jobs import check_job_id, job_outcome, output_paths, read_output
from holdfast.cli.target import CLUSTER, ENVIRONMENT, PROFILE, REGION, locate, refuse_on_aws

POLL_S = 0.5
GROUP_PREFIX = "/aws/sagemaker/Clusters"

_Files = list[tuple[str, list[str]]]
"""The lines of each file of output."""


class _NothingYetError(CommandError):
    """A job that waits, or that has only begun, has no output."""


def logs(
    node: Annotated[str | None, typer.Argument(help="Instance id. Default: list the streams there are.")] = None,
    job: Annotated[str | None, typer.Option(help="Print the output of this Slurm job instead.")] = None,
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
    if job is not None:
        check_job_id(job)
    context = locate(environment=environment, cluster=cluster, region=region, profile=profile)
    if job is not None:
        refuse_on_aws(context, what="reading the output of a job")
        if follow:
            _follow(
                lambda: _so_far(context, job=job), as_json=json, is_over=lambda: bool(job_outcome(context, job=job))
            )
        else:
            _print(job_output(context, job=job), as_json=json)
    elif node is not None:
        group, stream = _lifecycle_stream(context, node=node)
        if follow:
            _follow(lambda: [(stream, _stream_lines(context, group=group, stream=stream))], as_json=json)
        else:
            _print(_stream_lines(context, group=group, stream=stream), as_json=json)
    else:
        streams = [{"log_group": group, "log_stream": stream} for group, stream in lifecycle_streams(context)]
        if json:
            print_json(streams)
        for entry in [] if json else streams:
            console.print(f"{entry['log_group']}  {entry['log_stream']}")


def lifecycle_streams(context: Context) -> list[tuple[str, str]]:
    """(log group, log stream) of every lifecycle log of clusters of this name."""
    client = context.client("logs")
    # HyperPod names a group after the cluster's name; an ARN has only its id, with which the group ends.
    name = context.session.cluster_name
    prefix = f"{GROUP_PREFIX}/" if name.startswith("arn:") else f"{GROUP_PREFIX}/{name}/"
    pages = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
    groups = [group for page in pages for group in page["logGroups"]]
    if name.startswith("arn:"):
        groups = [group for group in groups if group["logGroupName"].endswith(f"/{name.rpartition('/')[2]}")]
    return [
        (group["logGroupName"], stream["logStreamName"])
        for group in groups
        for page in client.get_paginator("describe_log_streams").paginate(logGroupName=group["logGroupName"])
        for stream in page["logStreams"]
    ]


def _lifecycle_stream(context: Context, *, node: str) -> tuple[str, str]:
    streams = lifecycle_streams(context)
    for group, stream in streams:
        if stream.rpartition("/")[2] == node:
            return group, stream
    known = ", ".join(stream.rpartition("/")[2] for _, stream in streams) or "none yet"
    raise CommandError(f"there is no lifecycle log of {node!r}; instances with one: {known}")


def _stream_lines(context: Context, *, group: str, stream: str) -> list[str]:
    client = context.client("logs")
    lines: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = client.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True, **token)
        lines += [event["message"] for event in page["events"]]
        if not page["events"] or token.get("nextToken") == page["nextForwardToken"]:
            return lines
        token = {"nextToken": page["nextForwardToken"]}


def job_output(context: Context, *, job: str) -> list[str]:
    """
    The lines a job has written so far; those of several files, as an array has them, under the name of each.

    Raises:
        CommandError: Slurm has never heard of the job, or its output is not there.
    """
    found = _job_files(context, job=job)
    if len(found) == 1:
        return found[0][1]
    return [line for path, lines in found if lines for line in (_heading(path), *lines)]


def _job_files(context: Context, *, job: str) -> _Files:
    paths = output_paths(context, job=job)
    found = [(path, read_output(context, path=path, host=host)) for path, host in paths]
    if all(lines is None for _, lines in found):
        said = ", ".join(path for path, _ in found)
        if not job_outcome(context, job=job):
            raise _NothingYetError(
                f"job {job} has written nothing to {said} yet; wait for it with: holdfast logs --job {job} --follow"
            )
        raise CommandError(f"job {job} has no output at {said}; what Slurm knows of it: holdfast jobs {job}")
    return [(path, lines or []) for path, lines in found]


def _so_far(context: Context, *, job: str) -> _Files:
    """The same; nothing for a job that has not written yet."""
    try:
        return _job_files(context, job=job)
    except _NothingYetError:
        return []


def _heading(path: str) -> str:
    return f"==> {path} <=="


def _follow(read: Callable[[], _Files], *, as_json: bool, is_over: Callable[[], bool] = lambda: False) -> None:
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
            heading = [_heading(path)] if fresh and len(files) > 1 and path != last else []
            last = path if fresh else last
            for line in (*heading, *fresh):
                print(json_format.dumps(line) if as_json else line, flush=True)
        if ends:
            return
        time.sleep(POLL_S)


def _print(lines: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(lines)
    for line in [] if as_json else lines:
        print(line)
