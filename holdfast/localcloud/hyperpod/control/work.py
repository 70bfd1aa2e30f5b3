"""Work on single instances, each in a thread, and which instances are busy with it."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

THREADS = 80
REST_S = 1.0
"""After work that failed: it is decided again, and likely fails again."""
END_WITHIN_S = 3.0
POLL_S = 0.05

_log = logging.getLogger(__name__)


class Work:
    """
    Thread-safe.

    Args:
        on_done: Called when work has ended, while its instance is still busy.
        on_free: Called when the instance is not busy any more.
    """

    def __init__(self, *, on_done: Callable[[], None], on_free: Callable[[], None]) -> None:
        self.pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="work")
        self._on_done, self._on_free = on_done, on_free
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def busy(self) -> frozenset[str]:
        """Ids of instances."""
        with self._lock:
            return frozenset(self._busy)

    def start(self, instance_id: str, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread. Until it has ended, the instance is busy."""
        with self._lock:
            self._busy.add(instance_id)
        self.pool.submit(self._run, instance_id, work)

    def stop(self) -> None:
        """Begin nothing more, and give what runs a moment; it is left where it is and taken up by the next process."""
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
