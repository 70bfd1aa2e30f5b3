"""Cluster for ``--environment``, ``--cluster``, ``--region`` and ``--profile``."""

import contextlib
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.definitions import complete_environment, read_definition
from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.sessions import Context, Session, context_of, load, recorded
from holdfast.cli.deployed.status import read_status
from holdfast.cli.terminal import CommandError
from holdfast.environments import NoSuchEnvironmentError, environment_file
from holdfast.localcloud import from_environment

VARIABLE = "HOLDFAST_ENVIRONMENT"
TARGET = "Cluster"
"""Panel of the options in the help texts."""
_WHICH = "Deployed environment, name in environments/, or path. Default: $HOLDFAST_ENVIRONMENT, or the current one."
_option = partial(typer.Option, rich_help_panel=TARGET)
ENVIRONMENT = _option("--environment", "-e", metavar="ENV", help=_WHICH, autocompletion=complete_environment)
LONG_ENVIRONMENT = _option("--environment", metavar="ENV", help=_WHICH, autocompletion=complete_environment)
"""Without the letter, for a command that passes on options of another program."""
CLUSTER = _option("--cluster", metavar="NAME", help="Name or ARN of any cluster on AWS.")
REGION = _option("--region", help="AWS region of the cluster. Default: that of the profile.")
PROFILE = _option("--profile", help="Profile of the AWS configuration. Default: as the AWS CLI chooses.")

_ARN = re.compile(r"arn:[a-z0-9-]+:sagemaker:([a-z0-9-]+):\d{12}:cluster/[a-z0-9]+")
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_REGION = re.compile(r"[a-z]{2,5}(-[a-z]+){1,3}-\d{1,2}")


def locate(
    *,
    environment: str | None = None,
    cluster: str | None = None,
    region: str | None = None,
    profile: str | None = None,
) -> Context:
    """
    Return the cluster of the options, of HOLDFAST_ENVIRONMENT, or the current one. Raises: CommandError: no such one.
    """
    if environment is not None and cluster is not None:
        raise CommandError("got --environment and --cluster; allowed: one of them, a file names its cluster itself")
    if region is not None:
        check_region(region)
    if cluster is not None:
        return _on_aws(cluster=cluster, region=region, profile=profile)
    if environment is not None:
        return _named(environment, region=region, profile=profile)
    of_shell = os.environ.get(VARIABLE)
    if not of_shell:
        return _with(load(), region=region, profile=profile)
    try:
        return _named(of_shell, region=region, profile=profile)
    except NoSuchEnvironmentError as error:
        raise CommandError(f"got {VARIABLE}={of_shell}: {error}") from None


def check_region(region: str) -> None:
    """Raise CommandError if ``region`` has not the form of one."""
    if not _REGION.fullmatch(region):
        raise CommandError(f"got --region {region!r}; allowed: a region of AWS, such as us-west-2")


def _on_aws(*, cluster: str, region: str | None, profile: str | None) -> Context:
    arn = _ARN.fullmatch(cluster)
    if arn is None and not _NAME.fullmatch(cluster):
        raise CommandError(f"got --cluster {cluster!r}; allowed: the name or the ARN of a HyperPod cluster")
    if arn is not None and region is not None and arn[1] != region:
        raise CommandError(f"got --region {region}, and an ARN of {arn[1]}, leave --region out")
    chosen = arn[1] if arn is not None else region or _configured_region(profile)
    session = Session(
        environment="", cloud="aws", region=chosen, stack_name="", cluster_name=cluster, port=0, profile=profile or ""
    )
    return Context(session=session, local=from_environment())


def _named(name: str, *, region: str | None, profile: str | None) -> Context:
    local = from_environment()
    session = recorded(local.home, environment=name) if Path(name).name == name else None
    if session is not None:
        return _with(context_of(session, local), region=region, profile=profile)
    path = environment_file(name)
    definition = read_definition(path)
    if definition.cloud == "embedded":
        return _embedded(definition, path=path, region=region, profile=profile)
    if region is not None and region != definition.region:
        raise CommandError(f"got --region {region}, and {path.name} has {definition.region}; leave --region out")
    session = Session(
        environment=definition.name,
        cloud="aws",
        region=definition.region,
        stack_name=definition.stack_name,
        cluster_name=definition.cluster_name,
        port=0,
        profile=profile or "",
    )
    return Context(session=session, local=from_environment())


def _embedded(definition: Any, *, path: Path, region: str | None, profile: str | None) -> Context:
    if region is not None or profile is not None:
        raise CommandError(f"got --region or --profile; {path.name} is of the local cloud, which has neither")
    local = from_environment()
    session = recorded(local.home, environment=definition.name)
    if session is not None:
        return context_of(session, local)
    return _half_deployed(definition, path=path, current=load())


def _half_deployed(definition: Any, *, path: Path, current: Context) -> Context:
    """Return an environment whose deployment failed: its stack can be inspected."""
    session = Session(
        environment=definition.name,
        cloud="embedded",
        region=definition.region,
        stack_name=definition.stack_name,
        cluster_name=definition.cluster_name,
        port=current.local.port,
    )
    context = Context(session=session, local=current.local)
    try:
        context.describe_stack()
    except AwsError:
        raise CommandError(
            f"{current.session.environment} is up in {context.local.home}, not {definition.name}; "
            f"start it with: holdfast up {path}"
        ) from None
    return context


def _with(context: Context, *, region: str | None, profile: str | None) -> Context:
    session = context.session
    if region is None and profile is None:
        return context
    if session.cloud == "embedded":
        raise CommandError(
            f"got --region or --profile; {session.environment} is of the local cloud, which has neither; "
            "for a cluster on AWS: give --cluster NAME too"
        )
    if region is not None and region != session.region:
        raise CommandError(f"got --region {region}, and {session.environment} is in {session.region}; leave it out")
    changed = Session(**{**vars(session), "profile": profile or session.profile})
    return Context(session=changed, local=context.local)


def _configured_region(profile: str | None) -> str:
    import botocore.session
    from botocore.exceptions import ProfileNotFound

    try:
        region = botocore.session.Session(profile=profile).get_config_variable("region")
    except ProfileNotFound as error:
        raise CommandError(f"{error}; allowed: a profile of ~/.aws/config") from None
    if not region:
        raise CommandError("got no region; allowed: a region of AWS; add --region, such as --region us-west-2")
    return str(region)


def complete_job(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return job ids with names; none without a local cluster, since an account would answer too late."""
    with contextlib.suppress(Exception):
        context = locate(environment=ctx.params.get("environment"))
        view = read_status(context) if context.session.cloud == "embedded" else None
        if view is not None:
            jobs = [*((job.job_id, job.name) for job in view.jobs), *((job.job_id, job.name) for job in view.ended)]
            return [(job_id, name) for job_id, name in jobs if job_id.startswith(incomplete)]
    return []
