"""
A shared file system that stalls on one node: unanswered fanotify permission events on its mounts.

Opens, listings and reads on a marked mount wait; a node's bind mount is its own, so other nodes are not affected. Files
open before, stat and statfs are not affected, as with Lustre without metadata server. Waiting processes can be killed.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.nodes import REACHABLE, Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.nodes.kernel.mounts import MountEntry, mount_entries
from holdfast.localcloud.planting.effects.holding import FaultHold
from holdfast.localcloud.planting.faults import FaultError

_FAN_CLASS_CONTENT, _FAN_CLOEXEC = 0x4, 0x1
_FAN_MARK_ADD, _FAN_MARK_MOUNT = 0x1, 0x10
_FAN_OPEN_PERM, _FAN_ACCESS_PERM, _FAN_ONDIR = 0x10000, 0x20000, 0x40000000
_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def stalled_mount(node: Node, *, path: str, holding: FaultHold) -> Iterator[str]:
    """Stall all mounts of that file system on the node; yield them. Raise FaultError if none."""
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
    mounted = _mounted(node.pid)
    known = [entry for entry in mounted if entry.point == path]
    if not known:
        known = [entry for entry in mounted if entry.point.startswith(f"{REACHABLE}/")]
    if not known:
        raise FaultError(f"node {node.spec.instance_id} has nothing mounted at {path}, so nothing can stall there")
    return {(entry.device, entry.root) for entry in known}


def _mounts(node: Node, *, of: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    seen = set()
    for pid in proc.members(node.pid):
        space = proc.namespace(pid, "mnt")
        if not space or space in seen:
            continue
        seen.add(space)
        for entry in _mounted(pid):
            within = any(entry.device == device and f"{entry.root}/".startswith(f"{top}/") for device, top in of)
            if within and not entry.point.startswith(f"{REACHABLE}/"):
                yield f"{space} {entry.point}", f"/proc/{pid}/root{entry.point}"


def _point(key: str) -> str:
    return key.partition(" ")[2]


def _mounted(pid: int) -> list[MountEntry]:
    try:
        return mount_entries(Path(f"/proc/{pid}/mountinfo").read_text())
    except OSError:
        return []
