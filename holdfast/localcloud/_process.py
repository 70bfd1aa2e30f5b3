"""
Background processes of the local cloud: started detached, found again by pid file, ended by pid.

A pid alone is not an identity, because the kernel reuses it; the pid file also holds the process's
start time in clock ticks, and nothing is signalled unless both agree. What the processes do is
theirs; this file only starts and ends them.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0


class ProcessError(Exception):
    """A background process could not be started; the message holds the end of its log."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One running background process of a home directory."""

    pid: int
    start_ticks: int
    endpoint: str = ""

    def alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks

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


def start(
    *,
    name: str,
    argv: Sequence[str],
    home: Path,
    ready: Callable[[], bool],
    endpoint: str = "",
    environment: Mapping[str, str] | None = None,
    timeout_s: float = START_TIMEOUT_S,
) -> Process:
    """
    Start ``argv`` detached from the terminal and return once ``ready()`` holds.

    Its output goes to ``home/log/NAME.log``, its identity to ``home/run/NAME.json``.

    Raises:
        ProcessError: it ended, or was not ready within ``timeout_s``; nothing is left running.
    """
    log = home / "log" / f"{name}.log"
    record = _record_path(home=home, name=name)
    for folder in (log.parent, record.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    process = Process(pid=child.pid, start_ticks=start_ticks(child.pid) or 0, endpoint=endpoint)
    record.write_text(json.dumps(asdict(process)))
    try:
        _wait_until_ready(child, name=name, log=log, ready=ready, timeout_s=timeout_s)
    except BaseException:
        process.stop(timeout_s=2.0)
        child.poll()
        record.unlink(missing_ok=True)
        raise
    # The child outlives this process on purpose; this tells subprocess not to warn about it.
    child.returncode = 0
    return process


def find(*, name: str, home: Path) -> Process | None:
    """The running process ``name`` of this home. None when it never ran, ended or crashed."""
    try:
        process = Process(**json.loads(_record_path(home=home, name=name).read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None
    return process if process.alive() else None


def stop(*, name: str, home: Path) -> bool:
    """End process ``name`` of this home. True when one was running."""
    process = find(name=name, home=home)
    if process is not None:
        process.stop()
    _record_path(home=home, name=name).unlink(missing_ok=True)
    return process is not None


def start_ticks(pid: int) -> int | None:
    """Start time of ``pid`` in clock ticks since boot; None when there is no such live process (zombies are dead)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _wait_until_ready(
    child: "subprocess.Popen[bytes]", *, name: str, log: Path, ready: Callable[[], bool], timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    while not ready():
        code = child.poll()
        if code is not None:
            raise ProcessError(f"{name} ended with exit code {code} while starting:\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise ProcessError(f"{name} was not ready after {timeout_s:g} s; its log ends with:\n{_tail(log)}")
        time.sleep(0.05)


def _record_path(*, home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def _reap(pid: int) -> None:
    """Collect the exit status when the process is a child of ours; anyone else's is collected by its parent."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _tail(log: Path, *, lines: int = 8) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
