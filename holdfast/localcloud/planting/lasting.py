"""A lasting fault, held by its process."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.localcloud.nodes import Fleet, Node
from holdfast.localcloud.planting import lines
from holdfast.localcloud.planting.effects import (
    FaultHold,
    answering,
    device_of,
    full_disk,
    hung_driver,
    lossy_link,
    read_only_disk,
    stalled_mount,
    victim,
    write_kernel_lines,
)
from holdfast.localcloud.planting.faults import Fault

_SHARED = "/fsx"
_ECC_RATE = 100
_LOST = 15
_BOOT_CLOCK = Path("/proc/uptime")


@contextlib.contextmanager
def held(fault: Fault, *, node: Node, fleet: Fleet, gpu: int, holding: FaultHold) -> Iterator[tuple[str, str]]:
    """Hold the fault; yield the address of its GPU, or "", and the description."""
    device = device_of(node, gpu=gpu, required=True)[0] if fault.needs_gpus else ""
    with contextlib.ExitStack() as planted:
        detail = _plant(fault, node=node, gpu=gpu, holding=holding, planted=planted)
        if reported := _lines(fault, node=node, device=device, gpu=gpu):
            write_kernel_lines(node, reported, logs=fleet.kernel_logs)
        yield device, "; ".join([*reported[:1], detail])


def _plant(fault: Fault, *, node: Node, gpu: int, holding: FaultHold, planted: contextlib.ExitStack) -> str:
    if answers := _answers(fault, gpu=gpu):
        planted.enter_context(answering(node, name=fault.name, lines=answers))
        return ", ".join(f"{key}={value}" for key, value in answers.items())
    if fault.name == "hung-driver":
        place = planted.enter_context(hung_driver(node, name=fault.name, holding=holding))
        return f"calls into NVML wait in {place}"
    if fault.name == "stalled-mount":
        return planted.enter_context(stalled_mount(node, path=_SHARED, holding=holding))
    if fault.name == "lossy-link":
        return planted.enter_context(lossy_link(node))
    if fault.name == "read-only-disk":
        return planted.enter_context(read_only_disk(node))
    if fault.name == "disk-full":
        return planted.enter_context(full_disk(node))
    if fault.name == "freeze":
        planted.callback(_if_alive, node, node.thaw)
        node.freeze()
        return "every process is stopped"
    assert fault.name == "cut", fault
    planted.callback(_if_alive, node, node.heal)
    node.cut()
    return "the link is down"


def _if_alive(node: Node, undo: Callable[[], None]) -> None:
    if node.alive():
        undo()


def _answers(fault: Fault, *, gpu: int) -> dict[str, str]:
    if fault.name == "gpu-lost":
        return {f"gpu{gpu}.result": str(_LOST)}
    if fault.name == "xid-63-pending":
        return {f"gpu{gpu}.remap": "0,1,1,0"}
    if fault.name == "remap-failure":
        return {f"gpu{gpu}.remap": "0,1,0,1"}
    if fault.name == "double-bit-error":
        return {f"gpu{gpu}.ecc": "0,1"}
    if fault.name == "ecc-rate":
        return {f"gpu{gpu}.ecc_rate": f"{_ECC_RATE},{_BOOT_CLOCK.read_text().split()[0]}"}
    return {}


def _lines(fault: Fault, *, node: Node, device: str, gpu: int) -> list[str]:
    if fault.name == "gpu-lost":
        return [lines.off_the_bus(device)]
    if fault.xid:
        return [lines.xid(fault.xid, address=device, gpu=gpu, process=victim(node))]
    return lines.disk_became_read_only() if fault.name == "read-only-disk" else []


def leave_callers_folder() -> None:
    os.chdir("/")
