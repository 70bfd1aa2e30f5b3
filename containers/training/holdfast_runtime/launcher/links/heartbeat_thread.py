"""
Thread that sends heartbeats, so that a busy launcher is not taken for a lost one.

If the working thread does not return for the deadline of a stopped process, the heartbeats end.
"""

import threading
import time
from collections.abc import Mapping

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.watching import lateness_s


class HeartbeatThread:
    def __init__(self, *, links: Mapping[int, Link], deadlines: Deadlines) -> None:
        self._links = links
        self._deadlines = deadlines
        self.late_s = 0.0
        """How late this thread was woken lately: the machine has more to do than it can."""
        self._working_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-beats", daemon=True)

    def start(self) -> None:
        self.working(time.monotonic())
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(self._deadlines.heartbeat)

    def working(self, now_s: float) -> None:
        """The thread that works has come so far."""
        self._working_s = now_s

    def _run(self) -> None:
        while not self._wait(self._until_next(time.time())):
            if time.monotonic() - self._working_s > self._deadlines.heartbeat + self._deadlines.frozen:
                continue
            # A copy is made in one step of the interpreter; the thread that works changes it meanwhile.
            for link in [*self._links.values()]:
                if link.watches:
                    link.beat()

    def _wait(self, wait_s: float) -> bool:
        asked_s = time.monotonic()
        stopped = self._stopped.wait(wait_s)
        self.late_s = lateness_s(self.late_s, late_s=time.monotonic() - asked_s - wait_s, beats=1.0)
        return stopped

    def _until_next(self, now_s: float) -> float:
        return self._deadlines.beat - now_s % self._deadlines.beat
