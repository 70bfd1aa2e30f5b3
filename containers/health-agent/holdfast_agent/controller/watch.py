"""The watch of the controller's agent: a thread that looks, and a service that hears of it without waiting."""

import queue
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from holdfast_agent.controller.observation import Observation
from holdfast_agent.controller.watcher import Watcher
from holdfast_agent.signals import Happening

EVERY_S = 10.0
_MOST_WAITING = 100


class Looks(Protocol):
    """What is needed of ``Looker``."""

    def look(self, *, boot_s: float) -> Observation: ...


class ControllerWatch:
    """
    Looks at the cluster every few seconds, as soon as it is polled for the first time.

    Args:
        looker: Does it.
        every_s: Between the end of a look and the next one. Default: 10 s
    """

    def __init__(self, *, looker: Looks, every_s: float = EVERY_S) -> None:
        self._looker, self._every_s = looker, every_s
        self._watcher = Watcher()
        self._seen: queue.Queue[Observation] = queue.Queue(maxsize=_MOST_WAITING)
        self._due_s = float("-inf")
        self._wanted: queue.Queue[float] = queue.Queue(maxsize=1)
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self._is_looking = self._is_started = False
        self.problem = ""
        """What did not answer at the last look; empty where all did."""

    def poll(self, *, boot_s: float) -> "tuple[Happening, ...]":
        """What was found since the last call; never waits."""
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        told: list[Happening] = []
        while not self._seen.empty():
            seen = self._seen.get_nowait()
            self._is_looking, self._due_s = False, boot_s + self._every_s
            self.problem = "; ".join(seen.problems)
            told += self._watcher.look(seen)
        if not self._is_looking and boot_s >= self._due_s:
            self._is_looking = True
            self._wanted.put_nowait(boot_s)
        return tuple(told)

    def snapshot(self) -> "dict[str, Any]":
        """What has to outlive the agent, for JSON; its times are those since boot."""
        return self._watcher.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Go on where an agent of the same boot ended; False where the snapshot is none, and not taken."""
        watcher = Watcher()
        try:
            watcher.restore(snapshot)
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        self._watcher = watcher
        return True

    def close(self) -> None:
        """A look that is under way is left to itself."""
        if self._thread.is_alive() and not self._wanted.full():
            self._wanted.put_nowait(-1.0)

    def _run(self) -> None:
        while (boot_s := self._wanted.get()) >= 0:
            self._seen.put(self._looked(boot_s))

    def _looked(self, boot_s: float) -> Observation:
        try:
            return self._looker.look(boot_s=boot_s)
        except Exception as error:  # noqa: BLE001 - the next look may find out more
            return Observation(boot_s=boot_s, problems=(repr(error),))
