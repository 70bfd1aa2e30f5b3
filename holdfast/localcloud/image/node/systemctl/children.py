"""Processes below a supervisor, which adopts every orphan of its service."""

from __future__ import annotations

import os
import select
import signal
import socket
import time

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    import ctypes

    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) was refused")


def descendants(pid: int) -> list[int]:
    """Return every living process below ``pid``, without zombies."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, pending = [], [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class ChildWatch:
    def __init__(self, *, control: socket.socket, notify: socket.socket | None) -> None:
        self.ended: dict[int, int] = {}
        """Exit code, or minus the signal number, of each child that was reaped."""
        self.dumped: set[int] = set()
        self.messages: dict[str, str] = {}
        self.fed_at = 0.0
        """Time of the service's last watchdog message."""
        self.asked: list[socket.socket] = []
        """Connections of callers that want the service stopped, and an answer when it is."""
        self._control, self._notify = control, notify
        self._wake, write = os.pipe()
        for fd in (self._wake, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def until(self, true: Callable[[], bool], *, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while True:
            self.reap()
            if true():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._wait(left)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = os.waitstatus_to_exitcode(status)
            if os.WIFSIGNALED(status) and os.WCOREDUMP(status):
                self.dumped.add(pid)

    def _wait(self, left: float) -> None:
        sources: list[int | socket.socket] = [self._wake, self._control]
        if self._notify:
            sources.append(self._notify)
        ready, _, _ = select.select(sources, [], [], None if left == float("inf") else min(left, 3600))
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._control in ready:
            self.asked.append(self._control.accept()[0])
        if self._notify and self._notify in ready:
            for line in self._notify.recv(65536).decode(errors="replace").splitlines():
                key, _, value = line.partition("=")
                self.messages[key] = value
                if key == "WATCHDOG":
                    self.fed_at = time.monotonic() if value == "1" else 0.0


def listening(path: str, kind: int, *, mode: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, kind)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    made.bind(path)
    os.chmod(path, mode)
    return made


def pid_in(path: str) -> int:
    try:
        with open(path, encoding="utf-8") as file:
            return int(file.read().strip() or 0)
    except (OSError, ValueError):
        return 0
