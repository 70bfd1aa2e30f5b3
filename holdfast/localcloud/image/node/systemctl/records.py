"""Records of started units: JSON, and a lock that the supervisor, if any, holds."""

from __future__ import annotations

import fcntl
import json
import os

from .units import Root

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

AT_BOOT = frozenset({
    "basic.target", "default.target", "getty.target", "local-fs.target", "multi-user.target", "network.target",
    "network-online.target", "nss-lookup.target", "nss-user-lookup.target", "paths.target", "remote-fs.target",
    "slices.target", "sockets.target", "sysinit.target", "swap.target", "time-sync.target", "timers.target",
})  # fmt: skip
"""Targets that a machine which runs has reached; they have nothing of their own to do."""

NONE: Record = {
    "active": "inactive", "sub": "dead", "main_pid": 0, "exec_main_pid": 0, "exec_main_code": 0,
    "exec_main_status": 0, "result": "success", "restarts": 0, "since": 0.0, "entered": 0.0, "status_text": "",
}  # fmt: skip


def read(root: Root, name: str) -> Record:
    """Return the record of a unit, or an empty one. A lost supervisor shows as failed."""
    try:
        with open(f"{root.state}/{name}.json", encoding="utf-8") as file:
            record: Record = {**NONE, **json.load(file)}
    except (FileNotFoundError, ValueError):
        reached = {"active": "active", "sub": "active"} if name in AT_BOOT else {}
        return {**NONE, **reached}
    if (record.get("supervised") or record["main_pid"]) and not held(root, name):
        alive = record["main_pid"] and os.path.exists(f"/proc/{record['main_pid']}")
        if not alive:
            record.update(active="failed", sub="failed", result="resources", main_pid=0)
    return record


def write(root: Root, name: str, record: Record) -> None:
    os.makedirs(root.state, exist_ok=True)
    path = f"{root.state}/{name}.json"
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(temporary, path)


def forget(root: Root, name: str) -> None:
    for ending in (".json", ".sock", ".notify"):
        try:
            os.unlink(f"{root.state}/{name}{ending}")
        except FileNotFoundError:
            pass


def mark_reloaded(root: Root) -> None:
    """Make supervisors read their unit files again before the next use."""
    os.makedirs(root.state, exist_ok=True)
    path = f"{root.state}/reloaded"
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8"):
        pass
    os.replace(temporary, path)


def reloaded(root: Root) -> tuple[int, int]:
    """Return a value that changes with each ``daemon-reload``."""
    try:
        found = os.stat(f"{root.state}/reloaded")
    except FileNotFoundError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


def known(root: Root) -> list[str]:
    if not os.path.isdir(root.state):
        return []
    return sorted(entry[: -len(".json")] for entry in os.listdir(root.state) if entry.endswith(".json"))


def held(root: Root, name: str) -> bool:
    """Return True if a supervisor lives. The lock ends with its process, so a recycled pid does not matter."""
    try:
        fd = os.open(f"{root.state}/{name}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def take(root: Root, name: str) -> int:
    """Take the lock for a new supervisor; -1 if another lives."""
    os.makedirs(root.state, exist_ok=True)
    fd = os.open(f"{root.state}/{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    return fd
