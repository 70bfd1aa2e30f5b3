"""Real faults of one node: destroyed, frozen or disconnected."""

from enum import StrEnum

from holdfast.cli.deployed import Context, controller_hostname, instance, record_event
from holdfast_common import kinds


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


def inject(context: Context, *, node: str, fault: Fault) -> str:
    """Inject the fault, and record it. Returns the instance id."""
    target = instance(context, node=node)
    instance_id = target.spec.instance_id
    # Recorded first: the timeline counts the seconds to notice from here.
    record_event(context, kind=kinds.FAULT_INJECTED, node=instance_id, fault=TAXONOMY[fault])
    {Fault.destroy: target.destroy, Fault.freeze: target.freeze, Fault.cut: target.cut}[fault]()
    return instance_id
