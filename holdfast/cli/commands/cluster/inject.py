"""``holdfast inject``: faults of kernel, driver, disk, link or file system of a node."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.deployed import ENVIRONMENT, Context, complete_node, locate, require_local
from holdfast.cli.rehearsal import end_faults, plant_fault, planted_faults
from holdfast.cli.terminal import JSON, CommandError, console, print_json
from holdfast.cli.views import without_remedy

if TYPE_CHECKING:
    from holdfast.localcloud.planting import ActiveFault


def _complete_fault(incomplete: str) -> list[tuple[str, str]]:
    from holdfast.localcloud.planting import names_beginning_with

    return names_beginning_with(incomplete)


def inject(
    node: Annotated[
        str | None, typer.Argument(help="Instance id, host name or address.", autocompletion=complete_node)
    ] = None,
    fault: Annotated[
        str | None,
        typer.Argument(
            help="xid-N, clean-up-burst, gpu-lost, xid-63-pending, remap-failure, double-bit-error, ecc-rate, "
            "hung-driver, stalled-mount, lossy-link, read-only-disk, disk-full, oom, destroy, freeze or cut.",
            autocompletion=_complete_fault,
        ),
    ] = None,
    for_s: Annotated[
        float | None, typer.Option("--for", metavar="S", help="Duration in seconds. Default: until the node ends.")
    ] = None,
    gpu: Annotated[int, typer.Option(help="GPU number.", min=0, max=15)] = 0,
    end: Annotated[bool, typer.Option("--end", help="End all faults of the node, or this one.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List active faults.")] = False,
    environment: Annotated[str | None, ENVIRONMENT] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """
    Inject a fault into a local node.

    Injects silently, so that detection is tested too.
    A fault ends after --for, with its node, with --end, or with holdfast down.
    """
    _check(node=node, fault=fault, for_s=for_s, end=end, listed=listed)
    context = locate(environment=environment)
    require_local(context, what="holdfast inject")
    if listed or end:
        _show(_found(context, node=node, fault=fault, end=end), json=json, ended=end)
        return
    assert node is not None
    assert fault is not None
    done = plant_fault(context, node=node, fault=fault, for_s=for_s, gpu=gpu)
    if json:
        print_json(_as_json(done))
    else:
        console.print(f"{done.instance_id} ({done.host}): {done.fault}, {_until(done)}")
        console.print(f"  {done.detail}")
        console.print("  watch with: holdfast events --follow")
        if remark := without_remedy(done.fault):
            console.print(f"  {remark}")


def _check(*, node: str | None, fault: str | None, for_s: float | None, end: bool, listed: bool) -> None:
    from holdfast.localcloud.planting import FAULTS, FaultError, fault_named, seconds_of

    if end and listed:
        raise CommandError("got --end and --list; allowed: one of them")
    if node is None and not listed:
        raise CommandError("got no node; run: holdfast inject NODE FAULT, or holdfast inject --list")
    if fault is None and not (end or listed):
        raise CommandError(f"got no fault; allowed: {', '.join(FAULTS)}")
    try:
        if fault is not None:
            seconds_of(fault_named(fault), for_s)
    except FaultError as error:
        raise CommandError(str(error)) from None
    if for_s is not None and (end or listed):
        raise CommandError("got --for with --end or --list; allowed: --for with a new fault")


def _found(context: Context, *, node: str | None, fault: str | None, end: bool) -> "list[ActiveFault]":
    if end and node is not None:
        return end_faults(context, node=node, fault=fault)
    return [one for one in planted_faults(context, node=node) if fault in (None, one.fault)]


def _show(found: "list[ActiveFault]", *, json: bool, ended: bool) -> None:
    if json:
        print_json([_as_json(one) for one in found])
        return
    if not found:
        console.print("no active faults")
    for one in found:
        console.print(f"{one.instance_id} ({one.host}): {one.fault}, {'ended' if ended else _until(one)}; {one.detail}")


def _as_json(one: "ActiveFault") -> dict[str, Any]:
    hidden = ("pid", "start_ticks")
    return {name: value for name, value in asdict(one).items() if name not in hidden}


def _until(one: "ActiveFault") -> str:
    if not one.lasts:
        return "done"
    if one.ends_ns is None:
        return "active until its node ends"
    return f"active for {max(0.0, (one.ends_ns - time.time_ns()) / 1e9):.1f} s more"
