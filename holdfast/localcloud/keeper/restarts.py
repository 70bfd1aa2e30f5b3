"""
Restarts of the embedded AWS, the control plane, the monitor and the process of the kernel logs.

Processes are found by their records, as in ``up`` and ``down``. ``down`` removes the record, so that they stay down. A
process stopped by a signal is reported only. The control plane restarts this process.
"""

import threading

from holdfast.localcloud.processes import KeptProcess, LocalCloud
from holdfast.localcloud.supervision import Pass, Passes, passes_path

LOOK_S = 0.5


class ProcessKeeper:
    def __init__(self, *, cloud: LocalCloud, region: str, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._kept = (
            KeptProcess.recorded("aws", home=cloud.home, start=cloud.start_aws),
            KeptProcess.recorded("hyperpod", home=cloud.home, start=lambda: cloud.start_hyperpod(region=region)),
            KeptProcess(
                name="kernel-log",
                has_died=cloud.kernel_logs_died,
                start=cloud.restore_kernel_logs,
                log="nodes/kernel-log/log",
            ),
            KeptProcess.recorded("monitor", home=cloud.home, start=cloud.restart_monitor),
        )
        self._passes = Passes(path=passes_path(cloud.home, "keeper"), reported=self._reported)

    def run(self) -> None:
        self._passes.start()
        while not self._stopping.wait(LOOK_S):
            self.look()
        self._passes.stop()

    def look(self) -> None:
        for one in self._kept:
            if not self._stopping.is_set():
                one.look()

    def _reported(self) -> list[Pass]:
        return [one.reported() for one in self._kept]
