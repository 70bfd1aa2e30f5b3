"""A collective that does not end when it should."""

import threading
from datetime import timedelta


class SleepingWork:
    """A collective of gloo whose thread sleeps on, whatever happens to its connections."""

    ends_after = 1 << 30
    error = ""

    def __init__(self) -> None:
        self.looks = 0

    def wait(self, timeout: timedelta = timedelta(0)) -> None:
        if self.is_completed():
            if self.error:
                raise RuntimeError(self.error)
            return
        self.looks += 1
        threading.Event().wait(timeout.total_seconds() / 10)
        raise RuntimeError("Operation timed out!")

    def is_completed(self) -> bool:
        return self.looks >= self.ends_after
