from typing import Optional

from holdfast_agent.kernel_files import read_bytes

LONGEST_STEP_S = 1.0
"""Most that one turn of the loop adds: time in which the agent or the machine was suspended does not count."""


class Patience:
    def __init__(self) -> None:
        self.waited_s = 0.0
        self._last: Optional[float] = None

    def begin(self, boot_s: float) -> None:
        self.waited_s, self._last = 0.0, boot_s

    def turn(self, boot_s: float) -> float:
        if self._last is not None:
            self.waited_s += min(max(boot_s - self._last, 0.0), LONGEST_STEP_S)
        self._last = boot_s
        return self.waited_s


def started_at(pid: int) -> Optional[int]:
    """Start of a process in clock ticks since boot, which distinguishes reused pids; None: gone."""
    stat = read_bytes(f"/proc/{pid}/stat", most=1024)
    if stat is None:
        return None
    fields = stat.rpartition(b")")[2].split()
    # State Z has ended: whoever should reap it may be stopped.
    return int(fields[19]) if len(fields) > 19 and fields[0] not in (b"Z", b"X") else None
