"""Slurm's daemon on this node: runs and responds."""

import os
import shutil
from collections.abc import Mapping
from typing import Any

from holdfast_agent.children import Program
from holdfast_agent.detectors.detector import Detector, Instant, Seen
from holdfast_agent.kernel_files import read_bytes
from holdfast_agent.signals import conditions

ASKED_EVERY_S = 60.0
ANSWERS_WITHIN_S = 20.0
LOOKS = 2


class Slurmd(Detector):
    """A node that never ran slurmd is not checked; a restart between two polls is not reported."""

    name = "slurmd"
    interval_s = 15.0
    lost_after_s = 120.0
    """After a boot it starts when its controller responds."""

    def __init__(self, *, root: str = "/proc", ask: "tuple[str, ...]" = ()) -> None:
        super().__init__()
        self._root = root
        scontrol = shutil.which("scontrol")
        self._command = ask or ((scontrol, "show", "slurmd") if scontrol else ())
        self._program = Program(deadline_s=ANSWERS_WITHIN_S)
        self._pid = 0
        self._was_here = False
        self._absent = 0
        self._silent = 0
        self._answered = False
        self._asked_s = float("-inf")
        self._looked_s = float("-inf")
        self._why = ""

    def descriptors(self) -> "tuple[int, ...]":
        return self._program.descriptors()

    def due_in_s(self, at: Instant) -> float:
        return 1.0 if self._program.running else max(self._looked_s + self.interval_s - at.boot_s, 0.0)

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        ended = self._program.poll(at.boot_s)
        if ended is not None:
            self._answered = self._answered or ended.code == 0
            # One that never answered is asked in a way that it does not know.
            self._silent = self._silent + 1 if ended.code != 0 and self._answered else 0
            self._why = ended.problem or f"scontrol exited with {ended.code}"
        self.hung = int(self._program.stuck)
        if at.boot_s >= self._looked_s + self.interval_s:
            self._looked_s = at.boot_s
            self._absent = 0 if self._is_there() else self._absent + 1
        if not self._was_here:
            return self.unsupported("no slurmd found on this node")
        self.supported()
        if self._command and not self._absent and at.boot_s >= self._asked_s + ASKED_EVERY_S:
            self._asked_s = at.boot_s
            self._program.start(self._command, at.boot_s, os.environ)
        if self._absent >= LOOKS:
            text = "slurmd is stopped or no longer running"
        elif self._silent >= LOOKS:
            text = f"slurmd runs but does not respond: {self._why}"
        else:
            return self.holding(at, ())
        return self.holding(at, (self.signal(at, conditions.SLURM_DAEMON_DOWN, text),))

    def remember(self) -> "dict[str, Any]":
        return {**super().remember(), "was_here": self._was_here}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        self._was_here = bool(memory.get("was_here"))

    def asking(self) -> bool:
        return self._program.running

    def processes(self) -> "tuple[int, ...]":
        return (self._program.pid,)

    def close(self) -> None:
        self._program.close()

    def _is_there(self) -> bool:
        if not (self._pid and self._runs(self._pid)):
            self._pid = next((pid for pid in self._named() if self._runs(pid)), 0)
        self._was_here = self._was_here or bool(self._pid)
        return bool(self._pid)

    def _named(self) -> "list[int]":
        try:
            names = os.listdir(self._root)  # noqa: PTH208 - hundreds of names
        except OSError:
            return []
        return [int(name) for name in names if name.isdigit()]

    def _runs(self, pid: int) -> bool:
        """True for slurmd itself (not a step's child), neither stopped nor a zombie."""
        stat = read_bytes(f"{self._root}/{pid}/stat", most=512) or b""
        name, _, rest = stat.partition(b"(")[2].rpartition(b")")
        return name == b"slurmd" and rest[1:2] not in b"TtZX"
