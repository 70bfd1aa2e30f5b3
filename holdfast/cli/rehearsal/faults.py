"""Real faults of a node, or of all nodes of a switch: destroyed, frozen or disconnected."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.cli.deployed import Context, controller_hostname, instance, record_event, run
from holdfast.cli.terminal import CommandError
from holdfast_common import kinds

if TYPE_CHECKING:
    from holdfast.localcloud.nodes import Node

_NODES = """\
nodes=$(scontrol show topology "$1" | sed -n 's/.* Nodes=\\([^ ]*\\).*/\\1/p')
[ -z "$nodes" ] || scontrol show hostnames "$nodes"
"""


class Fault(StrEnum):
    """Fault of an instance: processes are killed or stopped, links are cut."""

    destroy = "destroy"
    freeze = "freeze"
    cut = "cut"


TAXONOMY = {Fault.destroy: "instance-lost", Fault.freeze: "instance-unreachable", Fault.cut: "instance-unreachable"}
"""The fault of ``holdfast_common.FAULTS`` that each of them is."""


def is_controller(context: Context, *, node: str) -> bool:
    """Return True for the node of Slurm's controller, by any of its names."""
    return instance(context, node=node).spec.hostname == controller_hostname(context)


def is_switch(name: str) -> bool:
    """Return True for the name of a network node of EC2, which is a switch in Slurm's topology."""
    return name.startswith("nn-")


def inject(context: Context, *, node: str, fault: Fault) -> str:
    """Inject the fault, and record it. Returns the instance id."""
    return _inject(context, [instance(context, node=node)], fault=fault)[0]


def lose_switch(context: Context, *, switch: str, fault: Fault) -> list[str]:
    """
    Inject the fault into all nodes of a switch at once, and record it. A node that no longer exists is left out.

    Returns:
        Instance ids.

    Raises:
        CommandError: no such switch, or no node below it.
    """
    from holdfast.localcloud.nodes import Fleet

    controller = controller_hostname(context)
    names = run(context, node=controller, argv=["sh", "-c", _NODES, "holdfast", switch]).stdout.split()
    targets = [node for node in Fleet(home=context.local.home).nodes() if node.spec.hostname in names]
    if not targets:
        raise CommandError(
            f"got switch {switch!r}, which has no node of the cluster; allowed: switches of Slurm's topology; see: "
            f"holdfast ssh {controller} -- scontrol show topology"
        )
    return _inject(context, targets, fault=fault, detail={"switch": switch})


def _inject(
    context: Context, targets: "Sequence[Node]", *, fault: Fault, detail: Mapping[str, str] | None = None
) -> list[str]:
    ids = [target.spec.instance_id for target in targets]
    # Recorded first: the timeline counts the seconds to notice from here.
    for instance_id in ids:
        record_event(context, kind=kinds.FAULT_INJECTED, node=instance_id, fault=TAXONOMY[fault], detail=detail)
    for target in targets:
        {Fault.destroy: target.destroy, Fault.freeze: target.freeze, Fault.cut: target.cut}[fault]()
    return ids
