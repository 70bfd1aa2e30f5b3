"""Wait during a fault: for its time, its node, or an end request; serve requests meanwhile."""

import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.localcloud.nodes import Node

_EXITING = 0x4
"""PF_EXITING of the kernel's task flags."""
_LOOK_S = 0.05


class FaultHold:
    """Wait for the end of a fault: after ``for_s`` seconds, or with the node."""

    def __init__(self, node: Node, *, for_s: float | None) -> None:
        self._node = node
        self._until_s = None if for_s is None else time.monotonic() + for_s
        self._served: dict[int, Callable[[], None]] = {}
        self._regular: list[Callable[[], None]] = []
        self._asked, self._ask = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._ask)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def serve(self, descriptor: int, answer: Callable[[], None]) -> None:
        """Call ``answer`` when there is something to read."""
        self._served[descriptor] = answer

    def regularly(self, action: Callable[[], None]) -> None:
        self._regular.append(action)

    def wait(self) -> None:
        poller = select.poll()
        for descriptor in (self._asked, *self._served):
            poller.register(descriptor, select.POLLIN)
        while self.goes_on() and (self._until_s is None or time.monotonic() < self._until_s):
            left_s = _LOOK_S if self._until_s is None else min(_LOOK_S, self._until_s - time.monotonic())
            ready = {descriptor for descriptor, _ in poller.poll(max(0.0, left_s) * 1000)}
            if self._asked in ready:
                return
            for descriptor in ready:
                self._served[descriptor]()
            for action in self._regular:
                action()

    def goes_on(self) -> bool:
        """
        Return True if the node lives and no end was requested.

        PID 1 waits for its processes, which may wait for this fault, so an exiting PID 1 counts as ended.
        """
        try:
            fields = Path(f"/proc/{self._node.pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return int(fields[19]) == self._node.start_ticks and fields[0] not in "ZX" and not int(fields[6]) & _EXITING
