"""
Liveness of control planes: restart those that do not answer.

EKS replaces them too (EKS user guide, "Amazon EKS architecture"); its delay is assumed. A program that is stopped by a
signal while the API server answers is reported, and killed after a while.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from holdfast.localcloud.kubernetes.control.control_plane import ControlPlane
from holdfast.localcloud.supervision import Worker

LOOK_EVERY_S, ANSWERS_WITHIN_S, SILENT_FOR_S = 2.0, 3.0, 4.0
STOPPED_REPORTED_AFTER_S, STOPPED_KILLED_AFTER_S = 3.0, 30.0
STARTS_WITHIN_S, STARTS_AT_MOST_WITHIN_S = 20.0, 640.0
"""
For an API server that was started again, before it counts as silent once more; twice as long after each restart that
did not help. A busy machine takes longer to start it, and each restart adds to its load.
"""

_log = logging.getLogger(__name__)


class Keeper:
    def __init__(self, *, planes: Callable[[], Iterable[ControlPlane]]) -> None:
        self._planes = planes
        self._silent_since: dict[str, float] = {}
        self._starts_within_s: dict[str, float] = {}
        self._stopped_since: dict[tuple[str, str], float] = {}
        """Cluster and program -> since when it stands still."""
        self._stopping = threading.Event()
        self.worker = Worker(
            name="kubernetes", work=self._run, stopping=self._stopping, late_after_s=120.0, problem=self.problem
        )

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()

    def problem(self) -> str:
        now = time.monotonic()
        return "; ".join(
            f"EKS cluster {name}: {program} stopped by a signal for {now - since:.0f} s"
            for (name, program), since in sorted(self._stopped_since.items())
            if now - since >= STOPPED_REPORTED_AFTER_S
        )

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            self.look()
            self.worker.passed()

    def look(self) -> None:
        planes = list(self._planes())
        for plane in planes:
            self._look(plane)
        names = {plane.cluster.name for plane in planes}
        self._stopped_since = {key: since for key, since in self._stopped_since.items() if key[0] in names}

    def _look(self, plane: ControlPlane) -> None:
        if restarted := plane.restart_loops():
            _log.warning("EKS cluster %s: lost loops: restarting %s", plane.cluster.name, ", ".join(restarted))
        plane.bound_logs()
        self._end_stopped(plane)
        key, now = plane.cluster.key, time.monotonic()
        if not plane.is_started or plane.api.is_ready(timeout_s=ANSWERS_WITHIN_S):
            self._silent_since.pop(key, None)
            self._starts_within_s.pop(key, None)
        elif now - self._silent_since.setdefault(key, now) >= SILENT_FOR_S:
            _log.warning("EKS cluster %s: API server does not answer: restarting it", plane.cluster.name)
            plane.restart_stalled()
            within_s = self._starts_within_s.get(key, STARTS_WITHIN_S)
            self._silent_since[key] = time.monotonic() + within_s
            self._starts_within_s[key] = min(2 * within_s, STARTS_AT_MOST_WITHIN_S)

    def _end_stopped(self, plane: ControlPlane) -> None:
        name, now = plane.cluster.name, time.monotonic()
        stopped = {(name, program) for program in plane.stopped_programs()}
        for key in [key for key in self._stopped_since if key[0] == name and key not in stopped]:
            del self._stopped_since[key]
        for key in stopped:
            self._stopped_since.setdefault(key, now)
        if any(now - self._stopped_since[key] >= STOPPED_KILLED_AFTER_S for key in stopped):
            programs = ", ".join(sorted(program for _, program in stopped))
            _log.warning("EKS cluster %s: killing stopped programs: %s", name, programs)
            plane.restart_stalled()
