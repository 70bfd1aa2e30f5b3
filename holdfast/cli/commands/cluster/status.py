from typing import Annotated

from holdfast.cli.deployed import CLUSTER, ENVIRONMENT, PROFILE, REGION, locate, read_status
from holdfast.cli.terminal import JSON, console, print_json
from holdfast.cli.views import render_status


def status(
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Show stack, cluster, nodes and jobs."""
    view = read_status(locate(environment=environment, cluster=cluster, region=region, profile=profile))
    if json:
        print_json(view)
    else:
        console.print(render_status(view))
