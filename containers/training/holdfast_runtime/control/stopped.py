"""Processes that are stopped (SIGSTOP): they are alive, hold their connections, and do nothing."""

import os
import signal
import struct
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LOOK_S = 1.0
"""Interval of polls. A poll that is much later is void: the poller itself was stopped."""
_TIMEVAL = struct.Struct("@ll")


class StoppedProcesses:
    """For how long processes have been seen stopped, look after look."""

    def __init__(self, limit_s: float) -> None:
        self.every_s = min(LOOK_S, limit_s / 4)
        self._limit_s = limit_s
        self._seen: dict[int, float] = {}
        self._looked_s: float | None = None

    def look(self, stopped: Iterable[int], *, now_s: float) -> list[int]:
        passed_s = min(now_s - self._looked_s, 2 * self.every_s) if self._looked_s is not None else 0.0
        self._looked_s = now_s
        self._seen = {pid: self._seen[pid] + passed_s if pid in self._seen else 0.0 for pid in stopped}
        return [pid for pid, seconds in self._seen.items() if seconds >= self._limit_s]


def is_stopped(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/stat").open("rb", buffering=0) as stat:
            line = stat.read(512)
    except OSError:
        return False
    return line.rpartition(b")")[2].split(None, 1)[:1] == [b"T"]


class LauncherWatch:
    """
    The launcher, as its processes see it: each rank that speaks with it, and the process that forks.

    One that is stopped (SIGSTOP) would leave them training, or waiting, with nobody to replace what dies and nobody
    to end the job. It is ended after a deadline: its processes die with it, and whoever started it sees that.

    Args:
        pid: 0 where it is not this process's parent, and not to be watched.
    """

    def __init__(self, *, pid: int, limit_s: float) -> None:
        self._pid = pid
        self._limit_s = limit_s
        self._stopped = StoppedProcesses(limit_s)
        self.every_s = self._stopped.every_s

    def look(self) -> None:
        if not self._pid or os.getppid() != self._pid:
            return
        seen = [self._pid] if is_stopped(self._pid) else []
        if self._stopped.look(seen, now_s=time.monotonic()):
            print(
                f"the launcher (process {self._pid}) has been stopped for {self._limit_s:g} s, as by SIGSTOP; it is "
                "killed, so that its end is seen",
                file=sys.stderr,
                flush=True,
            )
            os.kill(self._pid, signal.SIGKILL)


def timeval(seconds: float) -> bytes:
    return _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1e6))
