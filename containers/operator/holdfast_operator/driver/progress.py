"""Progress of running jobs, from the metrics of one of their launchers."""

import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

from holdfast_operator.driver.cache import Cache, Key
from holdfast_operator.jobs import Progress, read_metrics
from holdfast_operator.objects import METRICS_PORT

EVERY_S = 10.0
TIMEOUT_S = 2.0


class ProgressReader:
    """Newest progress of each job; read by a thread of its own, so that no decision waits for a pod."""

    def __init__(self, cache: Cache, *, changed: Callable[[], None]) -> None:
        self._cache = cache
        self._changed = changed
        self._known: dict[Key, Progress] = {}

    def of(self, key: Key) -> Progress | None:
        return self._known.get(key)

    def start(self) -> None:
        threading.Thread(target=self._loop, name="progress", daemon=True).start()

    def _loop(self) -> None:
        while True:
            time.sleep(EVERY_S)
            keys = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in self._cache.jobs()}
            self._known = {key: found for key, found in self._known.items() if key in keys}
            for key in keys:
                if (found := _asked(self._cache.pods_of(key))) is not None:
                    self._known[key] = found
            self._changed()


def _asked(pods: Iterable[dict[str, Any]]) -> Progress | None:
    """Return the answer of the first launcher that answers."""
    for pod in pods:
        address = (pod.get("status") or {}).get("podIP")
        if not address or pod["status"].get("phase") != "Running" or pod["metadata"].get("deletionTimestamp"):
            continue
        host = f"[{address}]" if ":" in address else address
        try:
            with urllib.request.urlopen(f"http://{host}:{METRICS_PORT}/metrics", timeout=TIMEOUT_S) as answer:
                return read_metrics(answer.read(1 << 16).decode(errors="replace"))
        except (OSError, ValueError):
            continue
    return None
