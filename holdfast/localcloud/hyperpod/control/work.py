"""Threads of work on single instances."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

THREADS = 80
REST_S = 1.0
"""Pause after failed work, which is likely to fail again."""
END_WITHIN_S = 3.0
POLL_S = 0.05

_log = logging.getLogger(__name__)


class InstanceWork:
    """Work on instances, one thread each. Thread-safe. ``on_done``: instance still busy; ``on_free``: not."""

    def __init__(self, *, on_done: Callable[[], None], on_free: Callable[[], None]) -> None:
        self.pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="work")
        self._on_done, self._on_free = on_done, on_free
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def busy(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._busy)

    def start(self, instance_id: str, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread; its instance is busy until it ends."""
        with self._lock:
            self._busy.add(instance_id)
        self.pool.submit(self._run, instance_id, work)

    def stop(self) -> None:
        """Start nothing more, and wait a moment; the next process continues."""
        self._stopping.set()
        self.pool.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + END_WITHIN_S
        while self.busy() and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _run(self, instance_id: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001
            # The entry point of a thread: the records still say what is to be done, and it is decided again.
            _log.exception("work on %s failed", instance_id)
            self._stopping.wait(REST_S)
        finally:
            # Done first: whoever sees the instance free must also see what the service says of it by now.
            self._on_done()
            with self._lock:
                self._busy.discard(instance_id)
            self._on_free()
