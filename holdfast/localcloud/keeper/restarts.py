"""
Restarts of the embedded AWS, the control plane and the process of the kernel logs.

Processes are found by their records, as in ``up`` and ``down``. ``down`` removes the record, so that they stay down. A
process stopped by a signal is reported only.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from holdfast.localcloud import processes
from holdfast.localcloud.supervision import Pass, Passes, passes_path

LOOK_S = 0.5
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
STEADY_AFTER_S = 60.0
"""One that has run for so long is started again at once."""
LATE_AFTER_S = 60.0

_log = logging.getLogger(__name__)


class Cloud(Protocol):
    @property
    def home(self) -> Path: ...

    def start_aws(self) -> bool: ...

    def start_hyperpod(self, *, region: str) -> bool: ...

    def kernel_logs_died(self) -> bool: ...

    def restore_kernel_logs(self) -> None: ...


@dataclass(kw_only=True)
class _Kept:
    name: str
    has_died: Callable[[], bool]
    start: Callable[[], object]
    log: str
    restarts: int = 0
    why: str = ""
    restarted_at: float = 0.0
    problem: str = ""
    pause_s: float = FIRST_PAUSE_S
    started_at: float = 0.0
    next_at: float = 0.0


class ProcessKeeper:
    def __init__(self, *, cloud: Cloud, region: str, stopping: threading.Event) -> None:
        self._home, self._stopping = cloud.home, stopping
        self._looked_at = time.monotonic()
        self._kept = (
            self._recorded("aws", start=cloud.start_aws),
            self._recorded("hyperpod", start=lambda: cloud.start_hyperpod(region=region)),
            _Kept(
                name="kernel-log",
                has_died=cloud.kernel_logs_died,
                start=cloud.restore_kernel_logs,
                log="nodes/kernel-log/log",
            ),
        )
        self._passes = Passes(path=passes_path(self._home, "keeper"), reported=self._reported)

    def _recorded(self, name: str, *, start: Callable[[], object]) -> _Kept:
        died = partial(processes.has_died, name=name, home=self._home)
        return _Kept(name=name, has_died=died, start=start, log=f"log/{name}.log")

    def run(self) -> None:
        self._passes.start()
        while not self._stopping.wait(LOOK_S):
            self.look()
            self._looked_at = time.monotonic()
        self._passes.stop()

    def look(self) -> None:
        for one in self._kept:
            now = time.monotonic()
            if not self._stopping.is_set() and one.next_at <= now and one.has_died():
                self._start(one, now)

    def _start(self, one: _Kept, now: float) -> None:
        steady = now - one.started_at > STEADY_AFTER_S
        one.pause_s = FIRST_PAUSE_S if steady else min(LONGEST_PAUSE_S, 2 * one.pause_s)
        _log.warning("%s: exited, restarting", one.name)
        try:
            one.start()
            one.restarts, one.problem = one.restarts + 1, ""
            one.why, one.restarted_at = f"it exited; see {one.log}", now
        except Exception as error:  # noqa: BLE001 - whatever keeps it from starting, it is tried again
            one.problem = f"{one.name}: restart failed: {error}"
            _log.warning("%s", one.problem)
        one.started_at = time.monotonic()
        one.next_at = one.started_at + one.pause_s

    def _reported(self) -> list[Pass]:
        return [
            Pass(
                name=one.name,
                at=self._looked_at,
                late_after_s=LATE_AFTER_S,
                restarts=one.restarts,
                why=one.why,
                restarted_at=one.restarted_at,
                kind="process",
                problem=one.problem,
            )
            for one in self._kept
        ]
