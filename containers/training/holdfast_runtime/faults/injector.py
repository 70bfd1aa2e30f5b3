"""Makes faults happen, and writes down that they did before they do."""

import json
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast_runtime.faults.specification import LINK_KINDS, Fault, InjectedError, parse_faults

VARIABLE = "HOLDFAST_FAULTS"
FIRED = "HOLDFAST_FAULTS_FIRED"
EXIT_CODE = 17
VICTIM_S = 30.0
"""How long a fault waits for its victim: a spare that is to be hit may be starting."""


class Injector:
    """The faults of one process."""

    def __init__(self, faults: Sequence[Fault] = (), *, fired: Path | None = None, status: Path | None = None) -> None:
        self._faults = tuple(faults)
        self._fired = fired
        self._status = status
        self.rank = -1
        self.step = 0

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> "Injector":
        """The faults that the environment names. Raises ValueError."""
        text = environment.get(VARIABLE)
        if not text:
            return Injector()
        status = environment.get("HOLDFAST_STATUS")
        return Injector(parse_faults(text), fired=Path(environment[FIRED]), status=Path(status) if status else None)

    def point(self, phase: str, *, step: int | None = None) -> None:
        """
        The process has reached a phase.

        Args:
            step: Of what goes on beside the training. Default: that of the training.

        Raises:
            InjectedError: a fault of kind exception.
        """
        if self._faults:
            for fault in self._due(phase, step):
                if fault.kind not in LINK_KINDS:
                    self._strike(fault)

    def link(self, phase: str, *, step: int | None = None) -> str | None:
        if not self._faults:
            return None
        kinds = []
        for fault in self._due(phase, step):
            if fault.kind in LINK_KINDS:
                kinds.append(fault.kind)
            else:
                self._strike(fault)
        return kinds[0] if kinds else None

    def _due(self, phase: str, step: int | None = None) -> list[Fault]:
        at = self.step if step is None else step
        matching = [f for f in self._faults if f.matches(phase=phase, rank=self.rank, step=at)]
        return [fault for fault in matching if self._claim(fault)]

    def _claim(self, fault: Fault) -> bool:
        """Return True if this is one of the ``times``; a file per firing outlives the process that it ends."""
        if self._fired is None:
            return True
        number = self._faults.index(fault)
        for count in range(fault.times):
            try:
                path = self._fired / f"{number}.{count}"
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                continue
            about = {"pid": os.getpid(), "rank": self.rank, "step": self.step, "phase": fault.phase, "kind": fault.kind}
            os.write(descriptor, json.dumps(about).encode())
            os.close(descriptor)
            return True
        return False

    def _strike(self, fault: Fault) -> None:
        if fault.kind == "exception":
            raise InjectedError(f"injected at rank {self.rank}, step {self.step}, phase {fault.phase}")
        pids = [self._pid(victim) for victim in sorted(fault.victims, key=lambda victim: victim == "self")]
        if fault.kind == "exit":
            os._exit(EXIT_CODE)
        for pid in pids:
            os.kill(pid, getattr(signal, fault.kind))

    def _pid(self, victim: str) -> int:
        if victim == "self":
            return os.getpid()
        if victim == "launcher":
            return os.getppid()
        rank = int(victim[5:]) if victim.startswith("rank:") else -1
        end = time.monotonic() + VICTIM_S
        while time.monotonic() < end:
            status = self._asked()
            pids = [status["forker"]] if victim == "forker" else _pids(status["processes"], rank)
            if pids and pids[0]:
                return int(pids[0])
            time.sleep(0.1)
        raise LookupError(f"there is no {victim} on this node to be hit")

    def _asked(self) -> dict[str, Any]:
        if self._status is None:
            raise ValueError("HOLDFAST_STATUS names no socket to ask for the victims' processes")
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5.0)
            line.connect(str(self._status))
            with line.makefile("rb") as file:
                status: dict[str, Any] = json.loads(file.read())
        return status


def _pids(processes: Sequence[Mapping[str, Any]], rank: int) -> list[int]:
    return [process["pid"] for process in processes if process["rank"] == rank and (rank >= 0 or process["ready"])]
