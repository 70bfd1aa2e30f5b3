"""Lifecycle logs from CloudWatch, and output of jobs."""

from collections.abc import Sequence

from holdfast.cli.deployed.choices import LineChoice
from holdfast.cli.deployed.cluster import instance_id_of
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.deployed.slurm_jobs import job_outcome, known_jobs, output_paths, read_output
from holdfast.cli.terminal import CommandError

GROUP_PREFIX = "/aws/sagemaker/Clusters"

OutputFiles = list[tuple[str, list[str]]]
"""The lines of each file of output."""


class _NothingYetError(CommandError):
    """A pending job, or one that has just started, has no output."""


def lifecycle_streams(context: Context) -> list[tuple[str, str]]:
    """Return (log group, log stream) of each lifecycle log of clusters of this name."""
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


def lifecycle_stream(context: Context, *, node: str) -> tuple[str, str]:
    """Return (log group, log stream) of a node, also of a removed one. Raises: CommandError: no lifecycle log."""
    streams = lifecycle_streams(context)
    names = {node, instance_id_of(context, node=node)}
    for group, stream in streams:
        if stream.rpartition("/")[2] in names:
            return group, stream
    known = ", ".join(stream.rpartition("/")[2] for _, stream in streams) or "none yet"
    raise CommandError(f"there is no lifecycle log of {node!r}; instances with one: {known}")


def stream_lines(context: Context, *, group: str, stream: str) -> list[tuple[int, str]]:
    """Return (nanoseconds since 1970, line) of each event."""
    client = context.client("logs")
    lines: list[tuple[int, str]] = []
    token: dict[str, str] = {}
    while True:
        page = client.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True, **token)
        lines += [(int(event.get("timestamp", 0)) * 1_000_000, event["message"]) for event in page["events"]]
        if not page["events"] or token.get("nextToken") == page["nextForwardToken"]:
            return lines
        token = {"nextToken": page["nextForwardToken"]}


def job_output(context: Context, *, job: str, choice: LineChoice | None = None) -> list[str]:
    """Return the output of a job, several files under headings. Raises: CommandError: no such job, or no output."""
    chosen = choice or LineChoice()
    found = [(path, chosen.of(lines)) for path, lines in _job_files(context, job=job)]
    if len(found) == 1:
        return found[0][1]
    return [line for path, lines in found if lines for line in (heading(path), *lines)]


def _job_files(context: Context, *, job: str) -> OutputFiles:
    known = output_paths(context, job=job)
    found = [file for path in dict.fromkeys(path for path, _ in known) for file in _read_all(context, path, known)]
    if all(lines is None for _, lines in found):
        paths = ", ".join(path for path, _ in found)
        if not job_outcome(context, job=job):
            raise _NothingYetError(
                f"job {job} has written nothing to {paths} yet; wait for it with: holdfast logs --job {job} --follow"
            )
        why = next((one.why for one in known_jobs(context, jobs=[job]) if one.why), "no file of that name exists")
        raise CommandError(f"job {job} has no output at {paths}: {why}")
    return [(path, lines or []) for path, lines in found]


def _read_all(context: Context, path: str, paths: Sequence[tuple[str, str]]) -> list[tuple[str, list[str] | None]]:
    hosts = [host for one, host in paths if one == path]
    if len(hosts) == 1:
        return [(path, read_output(context, path=path, host=hosts[0]))]
    shared = read_output(context, path=path, host="")
    if shared is not None:
        return [(path, shared)]
    return [(f"{host}:{path}", read_output(context, path=path, host=host)) for host in hosts]


def written_so_far(context: Context, *, job: str) -> OutputFiles:
    """Return the output files; empty for a job without output yet."""
    try:
        return _job_files(context, job=job)
    except _NothingYetError:
        return []


def heading(path: str) -> str:
    return f"==> {path} <=="
