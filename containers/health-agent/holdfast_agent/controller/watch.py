"""Watch of the controller's agent: a thread that polls, and a service that reads results without waiting."""

import queue
import threading
from collections.abc import Mapping
from typing import Any

from holdfast_agent.controller.observation import Observation
from holdfast_agent.controller.poller import ClusterPoller
from holdfast_agent.controller.watcher import Watcher
from holdfast_agent.signals import Happening

EVERY_S = 10.0
_MOST_WAITING = 100


class ControllerWatch:
    """Polls the cluster in a thread, from the first ``poll`` on; ``every_s`` lies between two polls."""

    def __init__(self, *, looker: ClusterPoller, every_s: float = EVERY_S) -> None:
        self._looker, self._every_s = looker, every_s
        self._watcher = Watcher()
        self._seen: queue.Queue[Observation] = queue.Queue(maxsize=_MOST_WAITING)
        self._due_s = float("-inf")
        self._requests: queue.Queue[float] = queue.Queue(maxsize=1)
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self._is_looking = self._is_started = False
        self.problem = ""
        """Sources without a response at the last poll."""

    def poll(self, *, boot_s: float) -> "tuple[Happening, ...]":
        """Return happenings since the last call; never waits."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        reported: list[Happening] = []
        while not self._seen.empty():
            seen = self._seen.get_nowait()
            self._is_looking, self._due_s = False, boot_s + self._every_s
            self.problem = "; ".join(seen.problems)
            reported += self._watcher.look(seen)
        if not self._is_looking and boot_s >= self._due_s:
            self._is_looking = True
            self._requests.put_nowait(boot_s)
        return tuple(reported)

    def snapshot(self) -> "dict[str, Any]":
        """State for JSON; times are since boot."""
        return self._watcher.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Resume the state of an agent of the same boot; False if the snapshot is invalid."""
        watcher = Watcher()
        try:
            watcher.restore(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        self._watcher = watcher
        return True

    def close(self) -> None:
        if self._thread.is_alive() and not self._requests.full():
            self._requests.put_nowait(-1.0)

    def _run(self) -> None:
        while (boot_s := self._requests.get()) >= 0:
            self._seen.put(self._looked(boot_s))

    def _looked(self, boot_s: float) -> Observation:
        try:
            return self._looker.look(boot_s=boot_s)
        except Exception as error:  # noqa: BLE001 - the next look may find out more
            return Observation(boot_s=boot_s, problems=(repr(error),))
