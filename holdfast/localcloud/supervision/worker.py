"""Threads that must not end before they are asked to."""

import logging
import threading
import time
from collections.abc import Callable

from holdfast.localcloud.supervision.passes import Pass

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
LATE_AFTER_S = 30.0

_log = logging.getLogger(__name__)


class Worker:
    """
    Run ``work`` in a thread, again whenever it raises or returns before ``stopping`` is set.

    ``work`` calls ``passed`` after each round, which distinguishes a working thread from a hung one.

    Args:
        late_after_s: A thread without a pass for this long is late. Default: 30 s.
        problem: Current problem, for people. Default: none.
    """

    def __init__(
        self,
        *,
        name: str,
        work: Callable[[], None],
        stopping: threading.Event,
        late_after_s: float = LATE_AFTER_S,
        problem: Callable[[], str] = lambda: "",
    ) -> None:
        self.name = name
        self._work, self._stopping, self._late_after_s, self._problem = work, stopping, late_after_s, problem
        self._passed_at = time.monotonic()
        self._ended, self._why, self._restarted_at = 0, "", 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._passed_at = time.monotonic()
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def passed(self) -> None:
        self._passed_at = time.monotonic()

    def reported(self) -> Pass:
        return Pass(
            name=self.name,
            at=self._passed_at,
            late_after_s=self._late_after_s,
            restarts=self._ended,
            why=self._why,
            restarted_at=self._restarted_at,
            problem=self._problem(),
        )

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._work()
                why = "it returned"
            except BaseException as error:  # noqa: BLE001 - whatever it was, the thread goes on
                why = f"{type(error).__name__}: {error}"
                if not self._stopping.is_set():
                    _log.exception("thread %s: failed, restarting", self.name)
            if self._stopping.is_set():
                return
            self._ended, self._why, self._restarted_at = self._ended + 1, why, time.monotonic()
            if time.monotonic() - began > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            self._stopping.wait(pause_s)
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
