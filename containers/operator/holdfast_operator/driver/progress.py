"""Progress of jobs, from the metrics of one of their launchers."""

import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

from holdfast_operator.driver.cache import Cache, Key
from holdfast_operator.objects import METRICS_PORT

EVERY_S = 10.0
TIMEOUT_S = 2.0
_VALUE = re.compile(r"^holdfast_(step|steps_lost_total)\{[^}]*\} (\S+)$", re.MULTILINE)


class Progress:
    """Newest step of each job; read by a thread of its own, so that no decision waits for a pod."""

    def __init__(self, cache: Cache, *, changed: Callable[[], None]) -> None:
        self._cache = cache
        self._changed = changed
        self._known: dict[Key, tuple[int, int]] = {}

    def of(self, key: Key) -> tuple[int | None, int | None]:
        """Return step and repeated steps of a job; None each if they are not known."""
        return self._known.get(key, (None, None))

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


def _asked(pods: Iterable[dict[str, Any]]) -> tuple[int, int] | None:
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


def read_metrics(text: str) -> tuple[int, int] | None:
    found = {name: int(float(value)) for name, value in _VALUE.findall(text)}
    return (found["step"], found.get("steps_lost_total", 0)) if "step" in found else None
