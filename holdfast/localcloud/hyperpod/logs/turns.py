"""
Whose turn it is to ship a node's events: the health agent's of the node, or that of whoever reads from outside.

Both count the events that the stream has and go on from there, so only one may at a time: the one that holds the
node's lock, which ends with its process. The agent comes first. It holds the lock for as long as it lives; from outside
it is held only while lines are on their way.
"""

import contextlib
import fcntl
import os
import time
from typing import Protocol

AGENT_RESTARTS_S = 5.0
"""After an agent: how long it has to come back, and a request that it had sent to be done."""


class Lock(Protocol):
    """Opens the file to be locked; OSError where the node is gone or has none."""

    def open(self) -> int: ...


class Turn:
    """
    Of one node, for its events. Not to be used by two threads.

    Args:
        lock: The node's. None: nobody else ships.
    """

    def __init__(self, *, lock: Lock | None) -> None:
        self.lock = lock
        self.is_shared = False
        """An agent has shipped, so how far was got is asked of the stream at every turn."""
        self._held = -1
        self._free_since: float | None = None
        self._resting = False
        self._touched = 0
        """When an agent took its turn last; it says so by the file's time."""

    @property
    def held(self) -> bool:
        return self._held >= 0

    def begin(self) -> bool:
        """Whether lines may be read and put now."""
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
        """What was read is in the stream."""
        if self.held:
            self._drop()
            self._resting = True

    def renew(self, lock: Lock | None) -> None:
        """The node has booted again, and has another lock; that of the same node is known already."""
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
