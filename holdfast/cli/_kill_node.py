"""``holdfast kill-node``: break a node on purpose, the way hardware does it."""

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli._deployed import record_event
from holdfast.cli._node_shell import instance
from holdfast.cli._output import console, print_json
from holdfast.cli._session import Context, load
from holdfast.cli.target import refuse_on_aws


class Fault(StrEnum):
    """What is done to the instance. Each is real: processes are killed or stopped, links are cut."""

    destroy = "destroy"
    freeze = "freeze"
    cut = "cut"


TAXONOMY = {Fault.destroy: "instance-lost", Fault.freeze: "instance-unreachable", Fault.cut: "instance-unreachable"}
"""The fault of ``holdfast_common.FAULTS`` that each of them is."""


def kill_node(
    node: Annotated[str, typer.Argument(help="Instance id, host name or address.")],
    fault: Annotated[Fault, typer.Option(help="destroy, freeze (stop its processes) or cut (unplug it).")] = (
        Fault.destroy
    ),
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Break a node of the local HyperPod; the control plane does not know until it notices."""
    context = load()
    refuse_on_aws(context, what="holdfast kill-node", node=node)
    instance_id = inject(context, node=node, fault=fault)
    if json:
        print_json({"instance_id": instance_id, "fault": fault.value})
    else:
        console.print(f"{instance_id}: {fault.value} done; watch with: holdfast events --follow")


def inject(context: Context, *, node: str, fault: Fault) -> str:
    """Do it, and record that it was done. Returns the instance id."""
    target = instance(context, node=node)
    instance_id = target.spec.instance_id
    # Recorded first: the timeline counts the seconds to notice from here.
    record_event(context, kind="fault_injected", node=instance_id, fault=TAXONOMY[fault])
    {Fault.destroy: target.destroy, Fault.freeze: target.freeze, Fault.cut: target.cut}[fault]()
    return instance_id
