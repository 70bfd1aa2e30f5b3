"""``holdfast logs``: the lifecycle log of a node from CloudWatch, or the output of a job."""

from holdfast.cli.deployed.sessions import Context
from holdfast.cli.deployed.slurm_jobs import job_outcome, output_paths, read_output
from holdfast.cli.terminal import CommandError

GROUP_PREFIX = "/aws/sagemaker/Clusters"

OutputFiles = list[tuple[str, list[str]]]
"""The lines of each file of output."""


class _NothingYetError(CommandError):
    """A job that waits, or that has only begun, has no output."""


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


def lifecycle_stream(context: Context, *, node: str) -> tuple[str, str]:
    streams = lifecycle_streams(context)
    for group, stream in streams:
        if stream.rpartition("/")[2] == node:
            return group, stream
    known = ", ".join(stream.rpartition("/")[2] for _, stream in streams) or "none yet"
    raise CommandError(f"there is no lifecycle log of {node!r}; instances with one: {known}")


def stream_lines(context: Context, *, group: str, stream: str) -> list[str]:
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
    return [line for path, lines in found if lines for line in (heading(path), *lines)]


def _job_files(context: Context, *, job: str) -> OutputFiles:
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


def written_so_far(context: Context, *, job: str) -> OutputFiles:
    """The same; nothing for a job that has not written yet."""
    try:
        return _job_files(context, job=job)
    except _NothingYetError:
        return []


def heading(path: str) -> str:
    return f"==> {path} <=="
