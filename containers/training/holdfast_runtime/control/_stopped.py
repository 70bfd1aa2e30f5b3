"""Processes that are stopped (SIGSTOP): they are alive, hold their connections, and do nothing."""

from collections.abc import Iterable
from pathlib import Path

LOOK_S = 1.0
"""Between two looks. One that comes much later says nothing: the one that looks was stopped itself."""


class Stopped:
    """
    For how long processes have been seen stopped, look after look.

    Args:
        limit_s: That is too long.
    """

    def __init__(self, limit_s: float) -> None:
        self.every_s = min(LOOK_S, limit_s / 4)
        self._limit_s = limit_s
        self._seen: dict[int, float] = {}
        self._looked_s: float | None = None

    def look(self, stopped: Iterable[int], *, now_s: float) -> list[int]:
        """Those of the stopped that have been so for too long. Call it once every ``every_s``."""
        passed_s = min(now_s - self._looked_s, 2 * self.every_s) if self._looked_s is not None else 0.0
        self._looked_s = now_s
        self._seen = {pid: self._seen[pid] + passed_s if pid in self._seen else 0.0 for pid in stopped}
        return [pid for pid, seconds in self._seen.items() if seconds >= self._limit_s]


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal; not one that a debugger holds, and not one that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] == ["T"]
