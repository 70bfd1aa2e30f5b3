"""Nodes and jobs that a shell completes: those of the local cluster, since an account would answer too late."""

import contextlib

import typer

from holdfast.cli.deployed.status import StatusView, read_status
from holdfast.cli.deployed.targets import locate


def complete_node(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Host names and instance ids, each with its instance group."""
    view = _status(ctx)
    names = (
        [(name, node.instance_group) for node in view.nodes for name in (node.hostname, node.instance_id)]
        if view
        else []
    )
    return [(name, group) for name, group in names if name and name.startswith(incomplete)]


def complete_job(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    view = _status(ctx)
    jobs = [(job.job_id, job.name) for job in [*view.jobs, *view.ended]] if view else []
    return [(job_id, name) for job_id, name in jobs if job_id.startswith(incomplete)]


def _status(ctx: typer.Context) -> StatusView | None:
    """None without a local cluster that answers: a completion has no place for a message."""
    with contextlib.suppress(Exception):
        context = locate(environment=ctx.params.get("environment"))
        return read_status(context) if context.session.cloud == "embedded" else None
    return None
