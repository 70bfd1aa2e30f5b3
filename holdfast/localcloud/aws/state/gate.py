"""Lock that requests share and a snapshot holds alone: moto's state is never caught in a change."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Shared by requests, exclusive for snapshots; a waiting snapshot goes before new requests."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._closing = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._closing)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self, *, timeout_s: float) -> Iterator[bool]:
        """Yield True if all requests ended in time; else nothing is locked, since nested requests would block."""
        deadline = time.monotonic() + timeout_s
        with self._condition:
            self._condition.wait_for(lambda: not self._closing)
            self._closing = True
            alone = self._condition.wait_for(lambda: self._inside == 0, timeout=max(0.0, deadline - time.monotonic()))
            if not alone:
                self._open()
        try:
            yield alone
        finally:
            if alone:
                with self._condition:
                    self._open()

    def _open(self) -> None:
        self._closing = False
        self._condition.notify_all()
