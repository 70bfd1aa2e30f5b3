"""Fault injection on local nodes, recorded in the event log."""

from typing import TYPE_CHECKING

from holdfast.cli.deployed import Context, instance, instance_status, record_event
from holdfast.cli.rehearsal.faults import TAXONOMY, Fault
from holdfast.cli.terminal import CommandError, Interrupted
from holdfast_common import kinds

if TYPE_CHECKING:
    from holdfast.localcloud.planting import Planted

IN_SERVICE = "Running"


def plant_fault(context: Context, *, node: str, fault: str, for_s: float | None, gpu: int) -> "Planted":
    """
    Inject a fault into a node in service, and record it. Raises: CommandError: no such node or fault, or it failed.
    """
    from holdfast.localcloud.nodes import Fleet
    from holdfast.localcloud.planting import PlantingError, fault_named, plant, planted

    chosen = fault_named(fault)
    target = instance(context, node=node)
    instance_id = target.spec.instance_id
    status = instance_status(context, instance_id=instance_id)
    if status != IN_SERVICE:
        raise CommandError(
            f"node {instance_id} is {status or 'no instance of the cluster any more'}, so {fault} was not planted: a "
            "fault is planted on a node in service; see: holdfast status"
        )
    fleet = Fleet(home=context.local.home)
    try:
        done = plant(fleet, target, chosen, for_s=for_s, gpu=gpu)
        _record(context, done)
    except PlantingError as error:
        raise CommandError(str(error)) from None
    except Interrupted:
        stays = [one.fault for one in planted(fleet, node=target)]
        raise CommandError(_what_stays(instance_id, stays), exit_code=130) from None
    return done


def planted_faults(context: Context, *, node: str | None = None) -> "list[Planted]":
    """Active faults; ``node`` by any of its names. Default: of all nodes."""
    from holdfast.localcloud.nodes import Fleet
    from holdfast.localcloud.planting import planted

    target = None if node is None else instance(context, node=node)
    return planted(Fleet(home=context.local.home), node=target)


def end_faults(context: Context, *, node: str, fault: str | None) -> "list[Planted]":
    """End the active faults of a node, or one of them, and return them. Raises: CommandError: none, or it failed."""
    from holdfast.localcloud.planting import PlantingError, end

    there = planted_faults(context, node=node)
    found = [one for one in there if fault in (None, one.fault)]
    if not found:
        names = ", ".join(one.fault for one in there) or "nothing"
        raise CommandError(
            f"{fault or 'no fault'} is not planted on {node}, where {names} is; see: holdfast inject --list"
        )
    try:
        end(found)
    except PlantingError as error:
        raise CommandError(str(error), exit_code=1) from None
    return found


def _record(context: Context, done: "Planted") -> None:
    known = {one.value: name for one, name in TAXONOMY.items()}
    fault = known.get(Fault(done.fault), done.fault) if done.fault in known else done.fault
    detail: dict[str, str | int] = {"planted": done.fault, "what": done.detail, "host": done.host}
    if done.device:
        detail["device"] = done.device
    if done.ends_ns is not None:
        detail["ends_ns"] = done.ends_ns
    record_event(
        context,
        kind=kinds.FAULT_INJECTED,
        node=done.instance_id,
        fault=fault,
        time_ns=done.since_ns,
        detail=detail,
    )


def _what_stays(instance_id: str, faults: list[str]) -> str:
    if not faults:
        return f"interrupted; no fault is active on {instance_id}"
    return (
        f"interrupted; planted on {instance_id}, and it stays: {', '.join(faults)}; end it with: "
        f"holdfast inject {instance_id} --end"
    )
