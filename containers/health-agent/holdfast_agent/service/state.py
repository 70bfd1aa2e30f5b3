"""
State of the agent: one file, replaced atomically.

It belongs to one node. Another node's file (from an image) and a damaged one are set aside with a message, and the
agent starts fresh. Of an earlier boot only the history of incidents is used.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

VERSION = 1


class LockedError(Exception):
    """Another agent runs on this node."""


class StateFile:
    def __init__(self, *, path: Path, node: str, boot: str) -> None:
        self.path = path
        self.node = node
        self.boot = boot
        self.problem = ""
        """Reason why the last write failed."""
        self.unsaved = 0
        self._lock = -1

    def lock(self) -> None:
        """Lock until this process ends; raises LockedError, or OSError if the folder cannot be written."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        name = self.path.with_name(f"{self.path.name}.lock")
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(lock, 32).decode("ascii", "replace").strip()
            os.close(lock)
            raise LockedError(f"another agent runs on this node (process {pid or 'unknown'} holds {name})") from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        self._lock = lock

    def load(self) -> "tuple[Optional[dict[str, Any]], bool, str]":
        """Return the state, or None; True if it is of this boot; and a message on one that was set aside."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None, False, ""
        except OSError as problem:
            return None, False, f"{self.path} cannot be read: {problem.strerror}; starting fresh"
        try:
            state = json.loads(text)
        except (ValueError, RecursionError):
            state = None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            return None, False, self._set_aside("damaged", "is damaged or has another version")
        if state.get("node") != self.node:
            return None, False, self._set_aside("other-node", f"belongs to another node, {state.get('node')!r}")
        return state, state.get("boot") == self.boot, ""

    def save(self, values: "Mapping[str, Any]") -> bool:
        """Replace it; return success. A full disk does not stop the agent."""
        state = {"version": VERSION, "node": self.node, "boot": self.boot, **values}
        beside = self.path.with_name(f"{self.path.name}.new")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                data = json.dumps(state, separators=(",", ":")).encode()
                if os.write(descriptor, data) != len(data):
                    raise OSError(None, "only partly written")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            beside.replace(self.path)
        except OSError as problem:
            self.problem = f"{self.path}: {problem.strerror}"
            self.unsaved += 1
            return False
        self.problem = ""
        return True

    def _set_aside(self, name: str, why: str) -> str:
        aside = self.path.with_name(f"{self.path.name}.{name}")
        try:
            self.path.replace(aside)
        except OSError as problem:
            return f"{self.path} {why}; starting fresh (cannot rename it: {problem.strerror})"
        return f"{self.path} {why}; set aside as {aside.name}; starting fresh"


def boot_identity() -> str:
    """
    Id of this boot of this node.

    A local node shares the kernel's boot id with its machine, so the start of its first process is added.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        began = Path("/proc/1/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return "unknown"
    return f"{boot}:{began}"
