"""Restart of a process that has exited: pauses between attempts, and the report."""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast.localcloud.processes import detached
from holdfast.localcloud.supervision import Pass

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
STEADY_AFTER_S = 60.0
"""One that has run for so long is started again at once."""
LATE_AFTER_S = 60.0

_log = logging.getLogger(__name__)


class KeptProcess:
    """
    A process that is restarted when it exits. A process stopped by a signal is not.

    Args:
        start: Returns False if there was nothing to start.
        log: Path of its log in the home, for the report.
    """

    def __init__(self, *, name: str, has_died: Callable[[], bool], start: Callable[[], bool | None], log: str) -> None:
        self.name = name
        self._has_died, self._start, self._log = has_died, start, log
        self._restarts, self._why, self._problem = 0, "", ""
        self._restarted_at = self._started_at = self._next_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._looked_at = time.monotonic()

    @classmethod
    def recorded(cls, name: str, *, home: Path, start: Callable[[], bool | None]) -> "KeptProcess":
        """Return a process that is found by its record. Where the record is removed first, it stays down."""
        died = partial(detached.has_died, name=name, home=home)
        return cls(name=name, has_died=died, start=start, log=f"log/{name}.log")

    def look(self) -> None:
        """Start it if it has died, or if the last start has failed."""
        now = time.monotonic()
        if self._next_at <= now and (self._problem or self._has_died()):
            self._restart(now)
        self._looked_at = time.monotonic()

    def _restart(self, now: float) -> None:
        steady = now - self._started_at > STEADY_AFTER_S
        self._pause_s = FIRST_PAUSE_S if steady else min(LONGEST_PAUSE_S, 2 * self._pause_s)
        _log.warning("%s: exited, restarting", self.name)
        try:
            if self._start() is not False:
                self._restarts, self._restarted_at = self._restarts + 1, now
                self._why = f"it exited; see {self._log}"
            self._problem = ""
        except Exception as error:  # noqa: BLE001 - whatever keeps it from starting, it is tried again
            self._problem = f"{self.name}: restart failed: {error}"
            _log.warning("%s", self._problem)
        self._started_at = time.monotonic()
        self._next_at = self._started_at + self._pause_s

    def reported(self) -> Pass:
        return Pass(
            name=self.name,
            at=self._looked_at,
            late_after_s=LATE_AFTER_S,
            restarts=self._restarts,
            why=self._why,
            restarted_at=self._restarted_at,
            kind="process",
            problem=self._problem,
        )
