from typing import Annotated

import typer

from holdfast.cli.deployed import ENVIRONMENT, complete_node, locate, require_local
from holdfast.cli.rehearsal import Fault, inject, is_controller, is_switch, lose_switch
from holdfast.cli.terminal import JSON, console, print_json


def kill_node(
    node: Annotated[
        str,
        typer.Argument(
            help="Instance id, host name, address, or a switch (nn-...): all of its nodes.",
            autocompletion=complete_node,
        ),
    ],
    fault: Annotated[Fault, typer.Option(help="destroy, freeze (stop all processes) or cut (disconnect).")] = (
        Fault.destroy
    ),
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Destroy, freeze or disconnect a local node or a leaf switch.

    The control plane is not informed, so that detection is tested too.
    """
    context = locate(environment=environment)
    require_local(context, what="holdfast kill-node")
    if is_switch(node):
        lost = lose_switch(context, switch=node, fault=fault)
        if json:
            print_json({"switch": node, "instance_ids": lost, "fault": fault.value})
        else:
            console.print(f"{', '.join(lost)}: {fault.value} done; watch with: holdfast events --follow")
        return
    controls = not json and context.orchestrator == "slurm" and is_controller(context, node=node)
    instance_id = inject(context, node=node, fault=fault)
    if json:
        print_json({"instance_id": instance_id, "fault": fault.value})
    else:
        console.print(f"{instance_id}: {fault.value} done; watch with: holdfast events --follow")
        if controls:
            console.print(
                "  it is Slurm's controller: jobs continue; Slurm's commands fail until it is back with its state"
            )
