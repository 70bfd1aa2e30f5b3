"""Peer of a Unix socket and its processes, verified by the kernel."""

import re
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from holdfast_common import job_name

PROC = Path("/proc")
MOST_DESCENDANTS = 4096
_CREDENTIALS = struct.Struct("3i")
_SLURM_JOB = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)


class PeerMismatchError(ValueError):
    """A report contradicts the kernel."""


@dataclass(frozen=True)
class Peer:
    """Process that connected; ``started`` (ticks since boot) distinguishes reused pids."""

    pid: int
    uid: int
    started: int

    @property
    def lives(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat[1] == self.started

    def check_names(self, *, job: str, task: str) -> None:
        """Compare the reported job with the kernel's and Slurm's view; raises PeerMismatchError."""
        found = _SLURM_JOB.findall(_text(PROC / str(self.pid) / "cgroup"))
        environment = _environment(PROC / str(self.pid) / "environ")
        known = found[-1] if found else environment.get("SLURM_JOB_ID", "")
        if known and task != known:
            raise PeerMismatchError(f"process {self.pid} belongs to Slurm job {known}, but reports {task or 'none'}")
        named = job_name(environment)
        if named and job != named:
            raise PeerMismatchError(f"process {self.pid} was started for job {named}, but reports {job or 'none'}")

    def own(self, pids: "tuple[int, ...]") -> "dict[int, int]":
        """Translate pids of the launcher to pids of this node; exited ones are left out. Raises PeerMismatchError."""
        if not self._in_a_container():
            return {pid: pid for pid in pids if self._check(pid)}
        inside = {_innermost(pid): pid for pid in self._descendants()}
        return {pid: inside[pid] for pid in pids if pid in inside and self._check(inside[pid])}

    def _check(self, pid: int) -> bool:
        stat = _stat(pid)
        if stat is None:
            return False
        uid = _uid(pid)
        if uid is not None and uid != self.uid:
            raise PeerMismatchError(f"user {self.uid} names process {pid} of user {uid}")
        above = pid
        for _ in range(64):
            if above == self.pid:
                return True
            parent = _stat(above)
            if parent is None or parent[0] <= 1:
                break
            above = parent[0]
        if _stat(pid) is None:  # its forefathers went with it
            return False
        raise PeerMismatchError(f"process {self.pid} names process {pid}, which it did not start")

    def _in_a_container(self) -> bool:
        return len(_namespaces(self.pid)) > 1

    def _descendants(self) -> "list[int]":
        found = [self.pid]
        for pid in found:
            with suppress(OSError):
                for task in (PROC / str(pid) / "task").iterdir():
                    found += map(int, (task / "children").read_text().split())
            if len(found) > MOST_DESCENDANTS:
                break
        return found[1:]


def peer_of(connection: socket.socket) -> Peer:
    """Peer of a connection. Raises PeerMismatchError if it is not visible from here."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    stat = _stat(pid) if pid > 0 else None
    if stat is None:
        raise PeerMismatchError("the connecting process is not visible here, or has exited")
    return Peer(pid=pid, uid=uid, started=stat[1])


def _stat(pid: int) -> "Optional[tuple[int, int]]":
    """Parent and start of a process; None if it is gone or a zombie."""
    text = _text(PROC / str(pid) / "stat")
    values = text[text.rfind(")") + 2 :].split()
    if len(values) < 20 or values[0] in "ZX":
        return None
    return int(values[1]), int(values[19])


def _uid(pid: int) -> Optional[int]:
    found = re.search(r"^Uid:\s+(\d+)", _text(PROC / str(pid) / "status"), re.MULTILINE)
    return int(found.group(1)) if found else None


def _namespaces(pid: int) -> "list[int]":
    """Pids of a process, from the outermost visible namespace to its own."""
    found = re.search(r"^NSpid:\s+(.*)$", _text(PROC / str(pid) / "status"), re.MULTILINE)
    return [int(each) for each in found.group(1).split()] if found else [pid]


def _innermost(pid: int) -> int:
    return (_namespaces(pid) or [pid])[-1]


def _environment(path: Path) -> "dict[str, str]":
    pairs = (item.partition("=") for item in _text(path).split("\0"))
    return {name: value for name, _, value in pairs}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""
