"""
The embedded AWS's clock: the machine's, until somebody skips a wait.

Services change the state of what they hold by this clock when it is looked at; skipping takes everything that is
being made or deleted further at once, without a wait. There is one embedded AWS in a process, so there is one clock.
"""

import threading
from datetime import UTC, datetime, timedelta


class _Ahead:
    """How far the clock is ahead of the machine's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by = timedelta()

    def add(self, more: timedelta) -> None:
        with self._lock:
            self.by += more


_ahead = _Ahead()


def now() -> datetime:
    """The time that services go by, in UTC."""
    return datetime.now(tz=UTC) + _ahead.by


def skip_time(seconds: float) -> None:
    """Let time pass without waiting."""
    _ahead.add(timedelta(seconds=seconds))


def reset_clock() -> None:
    """Back to the machine's time."""
    _ahead.by = timedelta()
