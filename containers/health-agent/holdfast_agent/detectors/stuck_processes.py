"""Processes that survive SIGKILL: they wait in the kernel, mostly for a driver or a file system."""

import os
from collections.abc import Callable
from typing import Optional

from holdfast_agent.detectors.detector import Detector, Facts, Instant, Seen
from holdfast_agent.kernel_files import read_bytes
from holdfast_agent.signals import Signal, conditions

_KILL = 1 << 8
"""Bit of signal 9 in SigPnd and ShdPnd."""


FOR_S = 60.0
"""A process that writes much to a busy file system takes a while to die."""


class StuckProcesses(Detector):
    """Leaves out ``own`` processes of the agent, which other detectors report."""

    name = "stuck-processes"
    interval_s = 10.0

    def __init__(self, *, own: "Callable[[], frozenset[int]]", root: str = "/proc") -> None:
        super().__init__()
        self._own = own
        self._root = root
        self._since: dict[int, float] = {}

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        try:
            names = os.listdir(self._root)  # noqa: PTH208 - hundreds of names
        except OSError as problem:
            return self.unsupported(f"{self._root}: {problem.strerror}")
        self.supported()
        own = self._own()
        waiting = {}
        for name in names:
            if name.isdigit() and int(name) not in own and (status := self._status(name)) is not None:
                waiting[int(name)] = status
        self._since = {pid: self._since.get(pid, at.boot_s) for pid in waiting}
        old = [pid for pid, since_s in self._since.items() if at.boot_s - since_s >= FOR_S]
        found = [self._signal(at, pid, waiting[pid]) for pid in old]
        self.numbers = {("holdfast_unkillable_processes", ()): float(len(found))}
        return self.holding(at, tuple(found))

    def _signal(self, at: Instant, pid: int, status: "dict[str, str]") -> Signal:
        name, waits_in = status.get("Name", "?"), self._read(f"{pid}/wchan") or "?"
        text = f"process {pid} ({name}) is in state D in {waits_in} with SIGKILL pending"
        facts: Facts = {"pid": pid, "waits_in": waits_in}
        return self.signal(at, conditions.PROCESS_UNKILLABLE, text, device=f"{name}[{pid}]", facts=facts)

    def _status(self, name: str) -> "Optional[dict[str, str]]":
        """Status of a process in D with SIGKILL pending; None for others, of which one file is read."""
        stat = self._read(f"{name}/stat")
        if stat is None or stat.rpartition(")")[2][:3] not in (" D ", " D\n"):
            return None
        text = self._read(f"{name}/status") or ""
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        pending = int(fields.get("SigPnd", "0"), 16) | int(fields.get("ShdPnd", "0"), 16)
        return fields if pending & _KILL else None

    def _read(self, name: str) -> Optional[str]:
        found = read_bytes(f"{self._root}/{name}", most=4096)
        return None if found is None else found.decode("utf-8", "replace")
