"""
Clock of the embedded AWS: the machine's time plus skipped waits.

One clock per process. Services change the state of their records by this clock when they are read.
"""

import threading
from datetime import UTC, datetime, timedelta


class _Ahead:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by = timedelta()

    def add(self, more: timedelta) -> None:
        with self._lock:
            self.by += more


_ahead = _Ahead()


def now() -> datetime:
    """Return the services' current time, in UTC."""
    return datetime.now(tz=UTC) + _ahead.by


def skip_time(seconds: float) -> None:
    """Advance the clock without waiting."""
    _ahead.add(timedelta(seconds=seconds))


def reset_clock() -> None:
    """Reset to the machine's time."""
    _ahead.by = timedelta()
