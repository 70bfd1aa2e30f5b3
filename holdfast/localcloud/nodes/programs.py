"""Programs on each node, from one scan of /proc."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.localcloud.nodes.kernel import proc

from .node import Node


@dataclass(frozen=True, kw_only=True)
class ProgramQuery:
    """
    A program to look for.

    Args:
        name: Its name in results.
        shown: Names in ps. Default: the name
        marks: Bytes in its command line that distinguish a daemon from its sessions. Default: any
    """

    name: str
    shown: tuple[str, ...] = ()
    marks: tuple[bytes, ...] = ()


def census(nodes: Iterable[Node], *, sought: Iterable[ProgramQuery]) -> Mapping[str, Mapping[str, str]]:
    """Return instance id -> program -> state in ps, without zombies; of several processes the parent's."""
    desired: dict[str, list[ProgramQuery]] = {}
    for one in sought:
        for shown in one.shown or (one.name,):
            desired.setdefault(shown, []).append(one)
    spaces = {proc.namespace(node.pid, "pid"): node.spec.instance_id for node in nodes if node.alive()}
    spaces.pop("", None)
    found: dict[str, dict[str, dict[int, str]]] = {instance_id: {} for instance_id in spaces.values()}
    for pid in proc.pids():
        instance_id = spaces.get(proc.namespace(pid, "pid"))
        if instance_id is None or not (candidates := desired.get(proc.program(pid))):
            continue
        state = proc.state(pid)
        if state and state not in "ZX":
            for one in candidates:
                if not one.marks or any(mark in proc.command_line(pid) for mark in one.marks):
                    found[instance_id].setdefault(one.name, {})[pid] = state
    return {
        instance_id: {name: _of_the_parent(processes) for name, processes in programs.items()}
        for instance_id, programs in found.items()
    }


def _of_the_parent(processes: Mapping[int, str]) -> str:
    return processes[min(processes, key=lambda pid: (proc.parent(pid) in processes, pid))]
