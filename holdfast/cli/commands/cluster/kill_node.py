"""``holdfast kill-node``: break a node on purpose, the way hardware does it."""

from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, locate, refuse_on_aws
from holdfast.cli.rehearsal import Fault, inject
from holdfast.cli.terminal import console, print_json


def kill_node(
    node: Annotated[str, typer.Argument(help="Instance id, host name or address.")],
    fault: Annotated[Fault, typer.Option(help="destroy, freeze (stop its processes) or cut (unplug it).")] = (
        Fault.destroy
    ),
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Break a node of the local HyperPod; the control plane does not know until it notices."""
    context = locate(environment=environment)
    refuse_on_aws(context, what="holdfast kill-node", node=node)
    instance_id = inject(context, node=node, fault=fault)
    if json:
        print_json({"instance_id": instance_id, "fault": fault.value})
    else:
        console.print(f"{instance_id}: {fault.value} done; watch with: holdfast events --follow")
