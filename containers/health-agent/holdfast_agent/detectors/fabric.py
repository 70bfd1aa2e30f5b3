"""EFA and InfiniBand: counters, link states, and devices that differ from their kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.children import Child
from holdfast_agent.detectors.detector import Detector, Instant, Seen
from holdfast_agent.fabric import ROOT, Ports, read_tree
from holdfast_agent.signals import conditions


class Fabric(Detector):
    name = "fabric"
    interval_s = 10.0
    deadline_s: Optional[float] = 10.0

    def __init__(self, *, root: str = ROOT, child: Optional[Child] = None) -> None:
        super().__init__()
        self._root = root
        self._child = child or Child(serve=read_tree, kill_after_s=60.0)
        self._ports = Ports()
        self._asked_s = float("-inf")
        self._seen_any = False
        self._adopt: list[int] = []

    def descriptors(self) -> "tuple[int, ...]":
        return self._child.descriptors()

    def due_in_s(self, at: Instant) -> float:
        return 1.0 if self._child.waiting else max(self._asked_s + self.interval_s - at.boot_s, 0.0)

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if self._adopt:
            self._child.adopt(self._adopt, at.boot_s)
            self._adopt = []
        tell: tuple[Seen, ...] = ()
        answer = self._child.poll(at.boot_s)
        if answer is not None:
            self.reason = answer.error
            if answer.error:
                self.parts[""] = answer.error
            else:
                tell = self._judge(at, answer.value)
        if not self._seen_any and not Path(self._root).is_dir():
            self._asked_s = at.boot_s
            return self.unsupported(f"no device in {self._root}")
        if self._child.waiting:
            assert self.deadline_s is not None
            late = self._child.waited_s > self.deadline_s
            self.hung = int(late)
            if late:
                self.reason = f"{self._root} does not answer ({self._child.phase}) for {self._child.waited_s:.0f} s"
                self.parts[""] = f"{self._root} does not answer ({self._child.phase})"
        elif at.boot_s >= self._asked_s + self.interval_s:
            self.hung = 0
            self._asked_s = at.boot_s
            self._child.ask({"root": self._root}, at.boot_s)
        return tell

    def remember(self) -> "dict[str, Any]":
        return {**super().remember(), "active": self._ports.remember(), "stuck": self._child.remember()}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        self._ports.restore(list(memory.get("active", [])))
        self._seen_any = bool(memory.get("active"))
        self._adopt = list(memory.get("stuck", []))

    def asking(self) -> bool:
        return self._child.waiting

    def processes(self) -> "tuple[int, ...]":
        return (self._child.pid,)

    def close(self) -> None:
        self._child.close()

    def _judge(self, at: Instant, devices: "Mapping[str, Any]") -> "tuple[Seen, ...]":
        self._seen_any = self._seen_any or bool(devices)
        if not self._seen_any:
            return self.unsupported(f"no device in {self._root}")
        self.supported()
        self.numbers = {
            (f"{_prefix(one['kind'])}_{name}", (("device", device), ("port", port))): float(value)
            for device, one in devices.items()
            for port, what in one["ports"].items()
            for name, value in what["counters"].items()
        }
        found = self._ports.look(devices, at.boot_s)
        return self.holding(
            at,
            tuple(
                self.signal(at, getattr(conditions, one.condition), one.text, device=one.device, facts=one.facts)
                for one in found
            ),
        )


def _prefix(kind: str) -> str:
    """Prefix of metrics: EFA's are named as AWS's exporter names them."""
    return "node_amazonefa" if kind.startswith("efa ") else "holdfast_rdma"
