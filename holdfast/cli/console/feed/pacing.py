"""Pace of work that costs more the longer the log is."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SHARE = 0.005
"""Most of a core."""
RESERVE = 5
"""Part of the share that is left for changes."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds between two looks."""

    events_s: float
    cluster_s: float


class Paced:
    """Work that is due at once after a change, else every so often, and never takes more than its share."""

    def __init__(self, every_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._ended_s = -every_s
        self._took_s = 0.0

    def is_due(self, *, changed: bool) -> bool:
        rested_s, rest_s = self._clock() - self._ended_s, self._took_s / SHARE
        return rested_s >= (rest_s if changed else max(self._every_s, RESERVE * rest_s))

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        begun_s = self._clock()
        yield
        self._ended_s = self._clock()
        self._took_s = self._ended_s - begun_s
