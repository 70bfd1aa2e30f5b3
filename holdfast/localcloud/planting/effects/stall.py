"""
A shared file system that stalls on one node: fanotify permission events on its mounts, which nobody answers.

The kernel asks this process before each open, listing and read on a marked mount, and waits. A node's bind mount is a
mount of its own, so other nodes go on. Files that were open before are not asked about, nor are stat and statfs, as
with a Lustre whose metadata server is away. Who waits can be killed. The descriptor must be no other process's.
"""

import contextlib
import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.nodes import REACHABLE, Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.planting.effects.holding import Holding
from holdfast.localcloud.planting.faults import FaultError

_FAN_CLASS_CONTENT, _FAN_CLOEXEC = 0x4, 0x1
_FAN_MARK_ADD, _FAN_MARK_MOUNT = 0x1, 0x10
_FAN_OPEN_PERM, _FAN_ACCESS_PERM, _FAN_ONDIR = 0x10000, 0x20000, 0x40000000
_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def stalled_mount(node: Node, *, path: str, holding: Holding) -> Iterator[str]:
    """
    While what is at ``path`` stalls, with every other mount of that file system on the node; yields the mount points.

    Raises:
        FaultError: nothing is mounted there.
    """
    whose = _file_systems(node, path=path)
    descriptor = _libc.fanotify_init(ctypes.c_uint(_FAN_CLASS_CONTENT | _FAN_CLOEXEC), ctypes.c_uint(os.O_RDONLY))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "fanotify_init: " + os.strerror(ctypes.get_errno()))
    marked: set[str] = set()

    def mark_new() -> None:
        # Containers have mounts of their own, in namespaces of their own, and new ones come with each job.
        for key, place in _mounts(node, of=whose):
            if key not in marked and _mark(descriptor, place):
                marked.add(key)

    try:
        mark_new()
        if not marked:
            raise FaultError(f"{path} of node {node.spec.instance_id} cannot be stalled")
        holding.regularly(mark_new)
        yield ", ".join(sorted({_point(key) for key in marked}))
    finally:
        os.close(descriptor)  # everybody goes on, and nothing is lost


def _mark(descriptor: int, place: str) -> bool:
    mask = _FAN_OPEN_PERM | _FAN_ACCESS_PERM | _FAN_ONDIR
    flags = ctypes.c_uint(_FAN_MARK_ADD | _FAN_MARK_MOUNT)
    at = ctypes.c_int(_AT_FDCWD)
    return bool(_libc.fanotify_mark(descriptor, flags, ctypes.c_uint64(mask), at, os.fsencode(place)) == 0)


def _file_systems(node: Node, *, path: str) -> set[tuple[str, str]]:
    """Device and folder in it of what is mounted at ``path``, or of all shared file systems that the node can mount."""
    known = [line for line in _mountinfo(node.pid) if line[2] == path]
    if not known:
        known = [line for line in _mountinfo(node.pid) if line[2].startswith(f"{REACHABLE}/")]
    if not known:
        raise FaultError(f"node {node.spec.instance_id} has nothing mounted at {path}, so nothing can stall there")
    return {(device, root) for device, root, _ in known}


def _mounts(node: Node, *, of: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A name for each mount of these file systems on the node, and a path to it from here."""
    seen = set()
    for pid in proc.members(node.pid):
        space = proc.namespace(pid, "mnt")
        if not space or space in seen:
            continue
        seen.add(space)
        for device, root, point in _mountinfo(pid):
            within = any(device == known and f"{root}/".startswith(f"{top}/") for known, top in of)
            if within and not point.startswith(f"{REACHABLE}/"):
                yield f"{space} {point}", f"/proc/{pid}/root{point}"


def _point(key: str) -> str:
    return key.partition(" ")[2]


def _mountinfo(pid: int) -> list[tuple[str, str, str]]:
    """Device, folder in it and mount point of all that a process has mounted (proc_pid_mountinfo(5))."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return []
    fields = [[_unescaped(field) for field in line.split()[2:5]] for line in lines]
    return [(device, root, point) for device, root, point in fields]


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
