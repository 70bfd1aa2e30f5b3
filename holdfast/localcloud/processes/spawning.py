"""Start of background processes: detached, recorded before they run, waited for until ready."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.localcloud.processes.detached import Process, record_path, start_ticks, stat_fields

STALL_S = 30.0
"""A starting process that is idle for this long is killed."""
LEAST_SHARE = 0.02
"""Of a processor, by which a process counts as doing something; to be asked whether it is ready takes less."""
LEAST_BYTES = 1 << 20
LONGEST_START_S = 1800.0
LONGEST_POLL_S = 0.5
GATE = 'read -r _ && exec "$@" </dev/null'
"""Of a shell: run the program when a line arrives, and end where the writer is gone instead."""


class ProcessError(Exception):
    """A background process did not start; the message holds the end of its log."""


def spawn(
    *,
    name: str,
    argv: Sequence[str],
    home: Path,
    log: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    endpoint: str = "",
) -> "tuple[subprocess.Popen[bytes], Process]":
    """
    Start ``argv`` detached, in its own session, with its output in ``log``.

    Its identity is in ``home/run/NAME.json`` before it runs, so the next command finds it whatever happens to the
    caller.
    """
    record = record_path(home=home, name=name)
    for folder in (log.parent, record.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            ["/bin/sh", "-c", GATE, "sh", *argv],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    assert child.stdin is not None
    with child.stdin as gate:
        process = Process(pid=child.pid, start_ticks=start_ticks(child.pid) or 0, endpoint=endpoint)
        fresh = record.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(process)))
        fresh.replace(record)
        with contextlib.suppress(BrokenPipeError):  # it was ended meanwhile
            os.write(gate.fileno(), b"\n")
    return child, process


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
    Start ``argv`` detached and return once ``ready()`` holds.

    Output goes to ``home/log/NAME.log``, identity to ``home/run/NAME.json``. There is no timeout while it makes
    progress.

    Raises:
        ProcessError: It exited, or was idle for ``stall_s`` without being ready; nothing is left running.
    """
    log = _log_path(home=home, name=name)
    child, process = spawn(name=name, argv=argv, home=home, log=log, environment=environment, endpoint=endpoint)
    try:
        _wait_until_ready(process, ended=lambda: _exit_code(child), name=name, log=log, ready=ready, stall_s=stall_s)
    except BaseException:
        process.stop(timeout_s=2.0)
        child.poll()
        record_path(home=home, name=name).unlink(missing_ok=True)
        raise
    # The child outlives this process on purpose; this tells subprocess not to warn about it.
    child.returncode = 0
    return process


def wait_until_ready(process: Process, *, name: str, home: Path, ready: Callable[[], bool]) -> None:
    """Wait until ``ready()`` holds of another command's process. Raise ProcessError, as `start`."""
    log = _log_path(home=home, name=name)

    def ended() -> str:
        return "" if process.alive() else "ended"

    _wait_until_ready(process, ended=ended, name=name, log=log, ready=ready, stall_s=STALL_S)


@dataclass(frozen=True, kw_only=True)
class WorkDone:
    cpu_s: float = 0.0
    transferred: int = 0
    """Bytes read and written."""

    def is_beyond(self, other: "WorkDone", *, stall_s: float) -> bool:
        """Return True if this is more than idle waiting for ``stall_s`` beyond the other."""
        return self.cpu_s - other.cpu_s >= LEAST_SHARE * stall_s or self.transferred - other.transferred >= LEAST_BYTES


def _work_of(pid: int) -> WorkDone:
    family = [pid, *_descendants(pid)]
    ticks = sum(int(field) for each in family for field in stat_fields(each)[11:15])
    transferred = 0
    for each in family:
        with contextlib.suppress(OSError):
            lines = [line.split(": ") for line in Path(f"/proc/{each}/io").read_text().splitlines()]
            transferred += sum(int(count) for name, count in lines if name in ("rchar", "wchar"))
    return WorkDone(cpu_s=ticks / os.sysconf("SC_CLK_TCK"), transferred=transferred)


def _descendants(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                yield child
                yield from _descendants(child)


def _wait_until_ready(
    process: Process,
    *,
    ended: Callable[[], str],
    name: str,
    log: Path,
    ready: Callable[[], bool],
    stall_s: float,
) -> None:
    began, idle_s = time.monotonic(), 0.0
    done, pause_s = WorkDone(), 0.05
    while not ready():
        if why := ended():
            raise ProcessError(f"{name} {why} while starting:\n{_tail(log)}")
        took_s, work = time.monotonic() - began, _work_of(process.pid)
        if work.is_beyond(done, stall_s=stall_s):
            idle_s, done = 0.0, work
        if idle_s > stall_s or took_s > LONGEST_START_S:
            raise ProcessError(
                f"{name} was not ready after {took_s:.0f} s and idle for the last {idle_s:.0f} s; "
                f"its log ends with:\n{_tail(log)}"
            )
        time.sleep(pause_s)
        idle_s += pause_s  # not by the clock: a machine that stood still has held up both processes
        if took_s > 5.0:
            pause_s = LONGEST_POLL_S


def _exit_code(child: "subprocess.Popen[bytes]") -> str:
    code = child.poll()
    return "" if code is None else f"ended with exit code {code}"


def _log_path(*, home: Path, name: str) -> Path:
    return home / "log" / f"{name}.log"


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-8:])
