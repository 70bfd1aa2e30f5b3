"""
Looks whether control planes answer, and has one started again that does not.

EKS replaces what does not answer (EKS user guide, "Amazon EKS architecture"); after how long is assumed. Programs that
have ended are no matter of this: each is started again where it ran.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from holdfast.localcloud.kubernetes.control.control_plane import ControlPlane
from holdfast.localcloud.supervision import Worker

LOOK_EVERY_S, ANSWERS_WITHIN_S, SILENT_FOR_S = 2.0, 3.0, 4.0
STARTS_WITHIN_S = 20.0
"""For an API server that was started again, before it counts as silent once more."""

_log = logging.getLogger(__name__)


class Keeper:
    """
    One thread.

    Args:
        planes: Those to look after, asked at each pass.
    """

    def __init__(self, *, planes: Callable[[], Iterable[ControlPlane]]) -> None:
        self._planes = planes
        self._silent_since: dict[str, float] = {}
        self._stopping = threading.Event()
        self.worker = Worker(name="kubernetes", work=self._run, stopping=self._stopping, late_after_s=120.0)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        """It ends with its question; nobody waits for it."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            for plane in self._planes():
                self._look(plane)
            self.worker.passed()

    def _look(self, plane: ControlPlane) -> None:
        key, now = plane.cluster.key, time.monotonic()
        if not plane.is_started or plane.api.is_ready(timeout_s=ANSWERS_WITHIN_S):
            self._silent_since.pop(key, None)
        elif now - self._silent_since.setdefault(key, now) >= SILENT_FOR_S:
            _log.warning("cluster %s of EKS does not answer; it is started again", plane.cluster.name)
            plane.revive()
            self._silent_since[key] = time.monotonic() + STARTS_WITHIN_S
