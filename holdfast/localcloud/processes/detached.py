"""
Background processes of the local cloud, found by pid file.

The pid file also holds the start time in clock ticks, since the kernel reuses pids; both must match before a signal.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Process:
    pid: int
    start_ticks: int
    endpoint: str = ""

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks

    def stands_still(self) -> bool:
        """Return True if a signal has stopped it (SIGSTOP)."""
        return self.alive() and stat_fields(self.pid)[:1] in (["T"], ["t"])

    def go_on(self) -> None:
        with contextlib.suppress(ProcessLookupError), _pidfd(self.pid) as pidfd:
            if self.alive():
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)

    def end(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Like `stop`, also for a process stopped by a signal."""
        self.go_on()
        self.stop(timeout_s=timeout_s)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Send SIGTERM, wait at most ``timeout_s``, then SIGKILL. Returns when the process is gone."""
        with contextlib.suppress(ProcessLookupError), _pidfd(self.pid) as pidfd:
            for sign, wait_s in ((signal.SIGTERM, timeout_s), (signal.SIGKILL, 5.0)):
                if not self.alive():
                    return
                signal.pidfd_send_signal(pidfd, sign)
                if select.select([pidfd], [], [], wait_s)[0]:
                    _reap(self.pid)
                    return


def find(*, name: str, home: Path) -> Process | None:
    """Return the running process ``name`` of this home, or None."""
    try:
        process = Process(**json.loads(record_path(home=home, name=name).read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None
    return process if process.alive() else None


def stop(*, name: str, home: Path) -> bool:
    """Stop process ``name`` of this home. True if it was running."""
    process = find(name=name, home=home)
    if process is not None:
        process.end()
    record_path(home=home, name=name).unlink(missing_ok=True)
    return process is not None


def has_died(*, name: str, home: Path) -> bool:
    record = record_path(home=home, name=name)
    if not has_record(name=name, home=home) or find(name=name, home=home) is not None:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _reap(int(json.loads(record.read_text())["pid"]))
    return True


def has_record(*, name: str, home: Path) -> bool:
    return record_path(home=home, name=name).exists()


@contextlib.contextmanager
def starting(*, name: str, home: Path) -> Iterator[None]:
    folder = home / "run"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start_ticks(pid: int) -> int | None:
    """Return start time of ``pid`` in clock ticks since boot; None if dead (zombies included)."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def stat_fields(pid: int) -> list[str]:
    """Return fields of /proc/PID/stat from the state on, or ()."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int]:
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def record_path(*, home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
