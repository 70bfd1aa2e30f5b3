"""
Background processes of the local cloud: found again by pid file, ended by pid.

A pid alone is not an identity, because the kernel reuses it; the pid file also holds the process's
start time in clock ticks, and nothing is signalled unless both agree.
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
    """One running background process of a home directory."""

    pid: int
    start_ticks: int
    endpoint: str = ""

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks

    def stands_still(self) -> bool:
        """Whether a signal has stopped it (SIGSTOP): it is there and does nothing."""
        return self.alive() and stat_fields(self.pid)[:1] in (["T"], ["t"])

    def go_on(self) -> None:
        """Let it run again after SIGSTOP."""
        with contextlib.suppress(ProcessLookupError), _pidfd(self.pid) as pidfd:
            if self.alive():
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)

    def end(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `stop`, also where a signal has stopped it."""
        self.go_on()
        self.stop(timeout_s=timeout_s)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """SIGTERM, wait at most ``timeout_s``, then SIGKILL. Returns when the process is gone."""
        if not self.alive():
            return
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            for sign, wait_s in ((signal.SIGTERM, timeout_s), (signal.SIGKILL, 5.0)):
                if not self.alive():
                    return
                signal.pidfd_send_signal(pidfd, sign)
                if select.select([pidfd], [], [], wait_s)[0]:
                    _reap(self.pid)
                    return
        finally:
            os.close(pidfd)


def find(*, name: str, home: Path) -> Process | None:
    """The running process ``name`` of this home. None when it never ran, ended or crashed."""
    try:
        process = Process(**json.loads(record_path(home=home, name=name).read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None
    return process if process.alive() else None


def stop(*, name: str, home: Path) -> bool:
    """End process ``name`` of this home. True when one was running."""
    process = find(name=name, home=home)
    if process is not None:
        process.end()
    record_path(home=home, name=name).unlink(missing_ok=True)
    return process is not None


def has_died(*, name: str, home: Path) -> bool:
    """Whether it was started, nobody ended it, and it runs no more."""
    record = record_path(home=home, name=name)
    if not has_record(name=name, home=home) or find(name=name, home=home) is not None:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _reap(int(json.loads(record.read_text())["pid"]))
    return True


def has_record(*, name: str, home: Path) -> bool:
    """Whether it was started and nobody ended it."""
    return record_path(home=home, name=name).exists()


@contextlib.contextmanager
def starting(*, name: str, home: Path) -> Iterator[None]:
    """While nobody else starts the same process of this home."""
    folder = home / "run"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start_ticks(pid: int) -> int | None:
    """Start time of ``pid`` in clock ticks since boot; None when there is no such live process (zombies are dead)."""
    fields = stat_fields(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; none when there is no such process."""
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
    """Collect the exit status when the process is a child of ours; anyone else's is collected by its parent."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
