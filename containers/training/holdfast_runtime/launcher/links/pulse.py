"""
The thread that gives signs of life, and does nothing else.

The thread that works may be busy for seconds, with the view of a large job or for want of a core, and is well: were it
the one that gives signs of life, a busy launcher would be taken for a lost one. One that does not come back to its
work at all is not well, so that its beats end after the deadline for a process that is stopped.
"""

import threading
import time
from collections.abc import Callable, Mapping

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.watching import lateness_s


class Pulse:
    """
    Of one launcher.

    Args:
        links: Those that count, by node.
    """

    def __init__(self, *, links: Callable[[], Mapping[int, Link]], deadlines: Deadlines) -> None:
        self._links = links
        self._deadlines = deadlines
        self.late_s = 0.0
        """How late this thread was woken lately: the machine has more to do than it can."""
        self._working_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-beats", daemon=True)

    def start(self) -> None:
        """Begin."""
        self.working(time.monotonic())
        self._thread.start()

    def stop(self) -> None:
        """Give no sign any more."""
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
            for link in [*self._links().values()]:
                if link.watches:
                    link.beat()

    def _wait(self, wait_s: float) -> bool:
        """Sleep, and see how late the end of it is; True where no sign is to be given any more."""
        asked_s = time.monotonic()
        stopped = self._stopped.wait(wait_s)
        self.late_s = lateness_s(self.late_s, late_s=time.monotonic() - asked_s - wait_s, beats=1.0)
        return stopped

    def _until_next(self, now_s: float) -> float:
        """
        Seconds until the next beat, which all launchers give at one time, as far as their clocks agree.

        So a launcher is woken once for all of its neighbours, and being woken is most of what a beat costs.
        """
        return self._deadlines.beat - now_s % self._deadlines.beat
