"""Nodes and jobs that a shell completes: those of the local cluster, since an account would answer too late."""

import contextlib

import typer

from holdfast.cli.deployed.status import read_status
from holdfast.cli.deployed.targets import locate


def complete_node(incomplete: str) -> list[str]:
    """Return host names and instance ids; none without a local cluster."""
    from holdfast.localcloud import from_environment
    from holdfast.localcloud.nodes import Fleet

    with contextlib.suppress(Exception):  # a completion has no place for a message
        specs = [node.spec for node in Fleet(home=from_environment().home).nodes()]
        names = [name for spec in specs for name in (spec.hostname, spec.instance_id)]
        return [name for name in names if name.startswith(incomplete)]
    return []


def complete_job(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return job ids with names; none without a local cluster."""
    with contextlib.suppress(Exception):
        context = locate(environment=ctx.params.get("environment"))
        view = read_status(context) if context.session.cloud == "embedded" else None
        jobs = [(job.job_id, job.name) for job in [*view.jobs, *view.ended]] if view else []
        return [(job_id, name) for job_id, name in jobs if job_id.startswith(incomplete)]
    return []
