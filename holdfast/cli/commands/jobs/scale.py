from typing import Annotated

import typer

from holdfast.cli.deployed import CLUSTER, ENVIRONMENT, PROFILE, REGION, ask_for_size, complete_job, locate
from holdfast.cli.terminal import console


def scale(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB", help="Job NUMBER, NUMBER_TASK of an array, or name.", autocompletion=complete_job
        ),
    ],
    nodes: Annotated[int, typer.Argument(metavar="N", help="Number of nodes; one of the job's sizes.", min=1)],
    environment: Annotated[str | None, ENVIRONMENT] = None,
    cluster: Annotated[str | None, CLUSTER] = None,
    region: Annotated[str | None, REGION] = None,
    profile: Annotated[str | None, PROFILE] = None,
) -> None:
    """Resize an elastic job while it trains."""
    ask_for_size(locate(environment=environment, cluster=cluster, region=region, profile=profile), job=job, nodes=nodes)
    console.print(f"job {job}: resize requested: {nodes} nodes; watch with: holdfast events --follow")
