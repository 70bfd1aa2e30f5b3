"""
What a restarted agent goes on from: one file, replaced as a whole.

It is of one node. Another node's (an image was made of a node) and one that is half-written are set aside with a word,
and the agent begins anew. Of an earlier boot only the history of incidents is taken.
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
    """
    Args:
        path: Its name; the lock is beside it.
        node: Whose it is.
        boot: Which boot this is.
    """

    def __init__(self, *, path: Path, node: str, boot: str) -> None:
        self.path = path
        self.node = node
        self.boot = boot
        self.problem = ""
        """Why it was not written the last time."""
        self.unsaved = 0
        self._lock = -1

    def lock(self) -> None:
        """
        Make sure that no other agent has this file; held until this process ends.

        Raises:
            LockedError: another has it.
            OSError: the folder cannot be made or written.
        """
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
        """The state, or None; whether it is of this boot; and a word on one that was set aside."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None, False, ""
        except OSError as problem:
            return None, False, f"{self.path} cannot be read: {problem.strerror}; beginning anew"
        try:
            state = json.loads(text)
        except (ValueError, RecursionError):
            state = None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            return None, False, self._set_aside("damaged", "is damaged or of another version")
        if state.get("node") != self.node:
            return None, False, self._set_aside("other-node", f"is of another node, {state.get('node')!r}")
        return state, state.get("boot") == self.boot, ""

    def save(self, values: "Mapping[str, Any]") -> bool:
        """Replace it; whether that could be done. A disk that is full is no reason to end."""
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
            return f"{self.path} {why}; beginning anew (it cannot be renamed: {problem.strerror})"
        return f"{self.path} {why}; set aside as {aside.name}, beginning anew"


def boot_identity() -> str:
    """
    This boot of this node.

    A local node shares its kernel, and so the boot id, with the machine that it is rehearsed on; its first process is
    its own, and begins anew with each boot.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        began = Path("/proc/1/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return "unknown"
    return f"{boot}:{began}"
