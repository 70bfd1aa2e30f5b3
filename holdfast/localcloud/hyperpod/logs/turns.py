"""
Turns of shipping a node's events: its health agent, or the control plane from outside.

Both continue from the number of events in the stream, so only the holder of the node's lock ships. The agent holds it
for its whole life, the control plane only for a batch.
"""

import contextlib
import fcntl
import os
import time
from typing import Protocol

AGENT_RESTARTS_S = 5.0
"""Wait for an agent's restart and its last request."""


class Lock(Protocol):
    """Open the file to lock; raise OSError if the node is gone or has none."""

    def open(self) -> int: ...


class Turn:
    """Turn of one node's events, for one thread. Without ``lock`` no other process ships."""

    def __init__(self, *, lock: Lock | None) -> None:
        self.lock = lock
        self.is_shared = False
        """True if an agent has shipped, so the position is read from the stream at every turn."""
        self._held = -1
        self._free_since: float | None = None
        self._resting = False
        self._touched = 0
        """Last turn of an agent, from the file's time."""

    @property
    def held(self) -> bool:
        return self._held >= 0

    def begin(self) -> bool:
        if self.held or self.lock is None:
            return True
        if self._resting:
            self._resting = False  # a moment in which an agent that waits gets its turn
            return False
        try:
            file = self.lock.open()
        except OSError:
            return not self.is_shared  # the node is gone: the rest is shipped when it is let go of
        if not self._take(file):
            self.is_shared, self._free_since = True, None
            return False
        touched = os.fstat(file).st_mtime_ns
        if touched != self._touched and self._touched:
            self.is_shared, self._free_since = True, None  # an agent came and went between two looks
        self._touched = touched
        if not self.is_shared:
            return True
        now = time.monotonic()
        self._free_since = now if self._free_since is None else self._free_since
        if now - self._free_since < AGENT_RESTARTS_S:
            self._drop()
            return False
        return True

    def end(self) -> None:
        if self.held:
            self._drop()
            self._resting = True

    def renew(self, lock: Lock | None) -> None:
        if lock != self.lock:
            self.close()
            self.lock, self._free_since, self._touched = lock, None, 0

    def close(self) -> None:
        if self.held:
            self._drop()

    def _take(self, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._held = file
        return True

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._held)
        self._held = -1
