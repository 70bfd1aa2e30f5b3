"""Injecting, listing and ending faults: the caller's side."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace

from holdfast.localcloud.kernel_log import KernelLogError
from holdfast.localcloud.nodes import Fleet, Node, NodeError
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.planting import lines, records
from holdfast.localcloud.planting.effects import device_of, run_out_of_memory, victim, write_kernel_lines
from holdfast.localcloud.planting.faults import Fault
from holdfast.localcloud.planting.records import ActiveFault

_PLANTED_WITHIN_S = 60.0
_ENDED_WITHIN_S = 20.0


class PlantingError(Exception): ...


def plant(fleet: Fleet, node: Node, fault: Fault, *, for_s: float | None = None, gpu: int = 0) -> ActiveFault:
    """Inject a fault, for ``for_s`` seconds (default: until ended), active on return. Raise PlantingError."""
    if not node.alive():
        raise PlantingError(
            f"node {node.spec.instance_id} is not running, lost or being replaced, so {fault.name} was not "
            "injected; see: holdfast status"
        )
    if any(one.fault == fault.name for one in planted(fleet, node=node)):
        raise PlantingError(
            f"{fault.name} is already injected on {node.spec.instance_id}; end it with: "
            f"holdfast inject {node.spec.instance_id} {fault.name} --end"
        )
    if fault.lasts:
        return _plant_lasting(fleet, node, fault, for_s=for_s, gpu=gpu)
    try:
        return _plant_momentary(fleet, node, fault, gpu=gpu)
    except (NodeError, KernelLogError, OSError, ValueError, subprocess.SubprocessError) as error:
        raise PlantingError(f"{fault.name} was not injected on {node.spec.instance_id}: {error}") from None


def planted(fleet: Fleet, *, node: Node | None = None) -> list[ActiveFault]:
    return [
        one
        for one in records.read(fleet.directory)
        if (node is None or one.instance_id == node.spec.instance_id) and proc.alive(pid=one.pid, ticks=one.start_ticks)
    ]


def end(ended: Iterable[ActiveFault]) -> None:
    """Revert lasting faults now. Raise PlantingError on failure."""
    found = list(ended)
    for one in found:
        with proc.pidfd(pid=one.pid, ticks=one.start_ticks) as descriptor:
            if descriptor is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)
                    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    for one in found:
        with proc.pidfd(pid=one.pid, ticks=one.start_ticks) as descriptor:
            if descriptor is not None and not proc.wait_ended(descriptor, timeout_s=_ENDED_WITHIN_S):
                raise PlantingError(
                    f"{one.fault} on {one.instance_id} is held by process {one.pid}, which does not end; "
                    f"end it with: kill -9 {one.pid}"
                )


def end_all(fleet: Fleet) -> None:
    """Revert all faults before the nodes end; kill what does not end."""
    found = planted(fleet)
    try:
        end(found)
    except PlantingError:
        for one in found:
            proc.kill(pid=one.pid, ticks=one.start_ticks, timeout_s=_ENDED_WITHIN_S)


def _plant_momentary(fleet: Fleet, node: Node, fault: Fault, *, gpu: int) -> ActiveFault:
    found = ActiveFault(
        instance_id=node.spec.instance_id,
        host=node.spec.hostname,
        fault=fault.name,
        what=fault.what,
        detail="",
        since_ns=time.time_ns(),
        lasts=False,
    )
    if fault.name == "destroy":
        node.destroy()
        return replace(found, detail="powered off")
    if fault.name == "oom":
        reported, code = run_out_of_memory(node)
        write_kernel_lines(node, reported, logs=fleet.kernel_logs)
        return replace(found, detail=f"{reported[-1]} (exit code {code})")
    device, known = device_of(node, gpu=gpu, required=False)
    process = victim(node)
    if fault.name == "clean-up-burst":
        reported = lines.clean_up(known, process=process)
    else:
        reported = [lines.xid(fault.xid, address=device, gpu=gpu, process=process)]
    found = replace(found, since_ns=time.time_ns())
    write_kernel_lines(node, reported, logs=fleet.kernel_logs)
    return replace(
        found, device=device, detail=reported[0] if len(reported) == 1 else f"{len(reported)} times: {reported[0]}"
    )


def _plant_lasting(fleet: Fleet, node: Node, fault: Fault, *, for_s: float | None, gpu: int) -> ActiveFault:
    command = [sys.executable, "-m", "holdfast.localcloud.planting", "--home", str(fleet.home)]
    command += ["--node", node.spec.instance_id, "--fault", fault.name, "--gpu", str(gpu)]
    command += [] if for_s is None else ["--for", repr(for_s)]
    # In a session of its own: Ctrl-C is for whoever asked, and ends this one with a message.
    holder = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert holder.stdout is not None
    assert holder.stderr is not None
    with holder.stdout, holder.stderr:
        try:
            answer = json.loads(_line(holder))
        except BaseException:
            _give_up(holder)
            raise
    if "refused" in answer:
        holder.wait(_ENDED_WITHIN_S)
        raise PlantingError(f"{fault.name} was not injected on {node.spec.instance_id}: {answer['refused']}")
    holder.returncode = 0  # it outlives this process on purpose
    return ActiveFault(**answer["planted"])


def _line(holder: "subprocess.Popen[bytes]") -> bytes:
    assert holder.stdout is not None
    assert holder.stderr is not None
    ready = select.select([holder.stdout], [], [], _PLANTED_WITHIN_S)[0]
    line = holder.stdout.readline() if ready else b""
    if not line:
        holder.kill()
        reported = holder.stderr.read().decode(errors="replace").strip().splitlines()
        raise PlantingError(
            f"the process that holds the fault did not start: {reported[-1] if reported else 'it reported nothing'}"
        )
    return line


def _give_up(holder: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    try:
        holder.wait(_ENDED_WITHIN_S)
    except subprocess.TimeoutExpired:
        holder.kill()
        holder.wait()
