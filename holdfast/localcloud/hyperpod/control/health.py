"""Detection of dead and frozen instances: deaths by the kernel's event, freezes by polling."""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterable

from holdfast.localcloud.hyperpod.control.reconcile import Health
from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.supervision import Worker

LOOK_S = 0.5
FROZEN_AFTER_S = 2.0


class HealthWatch:
    def __init__(self, *, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._nodes: dict[int, Node] = {}
        """By pidfd."""
        self._poller = select.epoll()
        self._stopped_since: dict[str, float] = {}
        self._stopping = threading.Event()
        self.worker = Worker(name="health", work=self._run, stopping=self._stopping)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self.worker.join(5.0)
        with self._lock:
            for fd in self._nodes:
                os.close(fd)
            self._nodes.clear()
        self._poller.close()

    def follow(self, nodes: Iterable[Node]) -> None:
        with self._lock:
            known = {(node.pid, node.start_ticks) for node in self._nodes.values()}
            for node in nodes:
                if (node.pid, node.start_ticks) in known or not node.alive():
                    continue
                with contextlib.suppress(ProcessLookupError):
                    fd = os.pidfd_open(node.pid)
                    self._nodes[fd] = node
                    self._poller.register(fd, select.EPOLLIN)

    def health(self, node: Node) -> Health:
        if not node.alive():
            return Health.DEAD
        since = self._stopped_since.get(node.spec.instance_id)
        return Health.FROZEN if since is not None and time.monotonic() - since >= FROZEN_AFTER_S else Health.ALIVE

    def _run(self) -> None:
        while not self._stopping.is_set():
            died = [fd for fd, _ in self._poller.poll(LOOK_S)]
            if self._stopping.is_set():
                return
            self._drop(died)
            if died or self._look():
                self._on_change()
            self.worker.passed()

    def _drop(self, fds: list[int]) -> None:
        with self._lock:
            for fd in fds:
                self._poller.unregister(fd)
                os.close(fd)
                self._stopped_since.pop(self._nodes.pop(fd).spec.instance_id, None)

    def _look(self) -> bool:
        with self._lock:
            nodes = list(self._nodes.values())
        now, found = time.monotonic(), False
        for node in nodes:
            name = node.spec.instance_id
            if proc.state(node.pid) not in ("T", "t"):
                self._stopped_since.pop(name, None)
                continue
            since = self._stopped_since.setdefault(name, now)
            found = found or now - since >= FROZEN_AFTER_S
        return found
