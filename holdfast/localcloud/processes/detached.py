"""
Background processes of the local cloud: started detached, found again by pid file, ended by pid.

A pid alone is not an identity, because the kernel reuses it; the pid file also holds the process's
start time in clock ticks, and nothing is signalled unless both agree. What the processes do is
theirs; this file only starts and ends them.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

STALL_S = 30.0
"""A process that is starting and has done nothing for this long is given up."""
LEAST_SHARE = 0.02
"""Of a processor, by which a process counts as doing something; to be asked whether it is ready takes less."""
LEAST_BYTES = 1 << 20
LONGEST_START_S = 1800.0
LONGEST_POLL_S = 0.5
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

    def stands_still(self) -> bool:
        """Whether a signal has stopped it (SIGSTOP): it is there and does nothing."""
        return self.alive() and _stat(self.pid)[:1] in (["T"], ["t"])

    def go_on(self) -> None:
        """Let it run again after SIGSTOP."""
        with contextlib.suppress(ProcessLookupError), _pidfd(self.pid) as pidfd:
            if self.alive():
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)

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
    stall_s: float = STALL_S,
) -> Process:
    """
    Start ``argv`` detached from the terminal and return once ``ready()`` holds.

    Its output goes to ``home/log/NAME.log``, its identity to ``home/run/NAME.json``. How long it takes is its affair
    (what it restores may be large, and the machine busy) as long as it does something.

    Raises:
        ProcessError: it ended, or did nothing for ``stall_s`` without being ready; nothing is left running.
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
    fresh = record.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(process)))
    fresh.replace(record)
    try:
        _wait_until_ready(child, name=name, log=log, ready=ready, stall_s=stall_s)
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
        process.go_on()
        process.stop()
    _record_path(home=home, name=name).unlink(missing_ok=True)
    return process is not None


def has_died(*, name: str, home: Path) -> bool:
    """Whether it was started, nobody ended it, and it runs no more."""
    record = _record_path(home=home, name=name)
    if not has_record(name=name, home=home) or find(name=name, home=home) is not None:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        _reap(int(json.loads(record.read_text())["pid"]))
    return True


def has_record(*, name: str, home: Path) -> bool:
    """Whether it was started and nobody ended it."""
    return _record_path(home=home, name=name).exists()


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
    fields = _stat(pid)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def _stat(pid: int) -> list[str]:
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


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a process and its children have done so far."""

    cpu_s: float = 0.0
    transferred: int = 0
    """Bytes read and written."""

    def is_beyond(self, other: "Work", *, stall_s: float) -> bool:
        """Whether this is enough more than the other to be no mere waiting for ``stall_s``."""
        return self.cpu_s - other.cpu_s >= LEAST_SHARE * stall_s or self.transferred - other.transferred >= LEAST_BYTES


def _work_of(pid: int) -> Work:
    family = [pid, *_descendants(pid)]
    ticks = sum(int(field) for each in family for field in _stat(each)[11:15])
    transferred = 0
    for each in family:
        with contextlib.suppress(OSError):
            lines = [line.split(": ") for line in Path(f"/proc/{each}/io").read_text().splitlines()]
            transferred += sum(int(count) for name, count in lines if name in ("rchar", "wchar"))
    return Work(cpu_s=ticks / os.sysconf("SC_CLK_TCK"), transferred=transferred)


def _descendants(pid: int) -> Iterator[int]:
    """Children that run, and theirs: what those have done counts for their parent only when they have ended."""
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                yield child
                yield from _descendants(child)


def _wait_until_ready(
    child: "subprocess.Popen[bytes]", *, name: str, log: Path, ready: Callable[[], bool], stall_s: float
) -> None:
    began = last = time.monotonic()
    done, pause_s = Work(), 0.05
    while not ready():
        code = child.poll()
        if code is not None:
            raise ProcessError(f"{name} ended with exit code {code} while starting:\n{_tail(log)}")
        now, work = time.monotonic(), _work_of(child.pid)
        if work.is_beyond(done, stall_s=stall_s):
            last, done = now, work
        if now - last > stall_s or now - began > LONGEST_START_S:
            raise ProcessError(
                f"{name} was not ready after {now - began:.0f} s and did nothing for the last {now - last:.0f} s; "
                f"its log ends with:\n{_tail(log)}"
            )
        time.sleep(pause_s)
        if now - began > 5.0:
            pause_s = LONGEST_POLL_S


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
