"""``holdfast status``: what is deployed, and how it does."""

from typing import Annotated

import typer

from holdfast.cli.deployed import CLUSTER, ENVIRONMENT, PROFILE, REGION, locate, read_status
from holdfast.cli.terminal import console, print_json
from holdfast.cli.views import render_status


def status(
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show a deployed environment, or any cluster, as AWS and its orchestrator report it."""
    view = read_status(locate(environment=environment, cluster=cluster, region=region, profile=profile))
    if json:
        print_json(view)
    else:
        console.print(render_status(view))
