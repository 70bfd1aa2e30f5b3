"""Failures by object: logged once, counted, cleared on success."""

import logging
import threading
import time
from collections.abc import Callable, Iterable

MOST_KEPT = 1000
"""Objects kept apart; beyond that only their number."""
AGAIN_AFTER_S = 5.0
"""Between two attempts at what failed: a pass comes several times a second."""


class Complaints:
    """
    Failures by object. Thread-safe.

    Args:
        log: Gets one warning for each object and reason.
        what: Starts each warning, such as "data repository association dra-1".
        again_after_s: Pause after a failure. Default: 5 s.
        clock: Default: the monotonic one.
    """

    def __init__(
        self,
        *,
        log: logging.Logger,
        what: str,
        again_after_s: float = AGAIN_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._what, self._again_after_s, self._clock = log, what, again_after_s, clock
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._again_at: dict[str, float] = {}
        self._beyond: set[int] = set()

    def record(self, about: str, why: str) -> None:
        """Record a failure of ``about``; the same reason is logged once."""
        with self._lock:
            fresh = self._known.get(about) != why
            if about not in self._known and len(self._known) >= MOST_KEPT:
                self._beyond.add(hash(about))
                return
            self._known[about] = why
            self._again_at[about] = self._clock() + self._again_after_s
        if fresh:
            self._log.warning("%s: %s: %s", self._what, _printable(about), why)

    def settled(self, about: str) -> None:
        with self._lock:
            self._known.pop(about, None)
            self._again_at.pop(about, None)
            self._beyond.discard(hash(about))

    def settle_others(self, keep: Iterable[str]) -> None:
        """Clear failures of objects that are not in ``keep``."""
        desired = set(keep)
        with self._lock:
            self._known = {about: why for about, why in self._known.items() if about in desired}
            self._again_at = {about: at for about, at in self._again_at.items() if about in desired}
            self._beyond &= {hash(about) for about in desired}

    def attempt(self, about: str, work: Callable[[], bool], *, failures: tuple[type[BaseException], ...]) -> bool:
        """Run ``work``; return True on success. Errors in ``failures`` are recorded."""
        if self._again_at.get(about, 0.0) > self._clock():
            return False
        try:
            done = work()
        except failures as error:
            self.record(about, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            return False
        if done:
            self.settled(about)
        return done

    def guard(self, about: str, work: Callable[[], None]) -> None:
        """Run ``work``; record any error, and retry later."""

        def done() -> bool:
            work()
            return True

        self.attempt(about, done, failures=(Exception,))

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._known) + len(self._beyond)

    @property
    def summary(self) -> str:
        """Return one line, or ""."""
        with self._lock:
            if not self._known:
                return ""
            about, why = next(iter(self._known.items()))
            more = len(self._known) + len(self._beyond) - 1
        return f"{self._what}: {_printable(about)}: {why}" + (f", and {more} more" if more else "")


def _printable(text: str) -> str:
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= 200 else f"{shown[:120]}... ({len(text)} characters)"
