"""``holdfast scale``."""

from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, ask_for_size, locate
from holdfast.cli.terminal import console


def scale(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Number, or NUMBER_TASK of a job array; or name.")],
    nodes: Annotated[int, typer.Argument(metavar="N", help="Nodes that it is to have; one of its sizes.", min=1)],
    environment: Annotated[str | None, ENVIRONMENT] = None,
) -> None:
    """Ask an elastic job for another number of nodes, while it trains."""
    ask_for_size(locate(environment=environment), job=job, nodes=nodes)
    console.print(f"job {job}: {nodes} nodes are asked for; holdfast events shows the change")
