"""Clock of the embedded AWS, one per process: the machine's time plus skipped waits."""

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
    _ahead.add(timedelta(seconds=seconds))


def reset_clock() -> None:
    _ahead.by = timedelta()
