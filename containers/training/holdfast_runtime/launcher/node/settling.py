"""Completion of a generation: each launcher of the view reports that its ranks have their state and peers."""

import time
from collections.abc import Callable, Mapping

from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.links import AllSettled, Settled
from holdfast_runtime.membership import View

ON_THE_WAY = ("recover", "copy")


class Settling(Part):
    """
    As one launcher sees it.

    Args:
        instance: Of this node; empty outside of a cluster.
        settled: Called once for each generation, with what each launcher of its view said, by node.
    """

    def __init__(
        self, context: Context, *, instance: str, settled: Callable[[View, Mapping[int, Settled]], None]
    ) -> None:
        super().__init__(context)
        self._instance = instance
        self._settled = settled
        self._view = View(generation=0, nodes=())
        self._reports: dict[tuple[int, int], Settled] = {}
        """By generation and node: others may be quicker than this launcher."""
        self._missing: set[int] = set()
        """Nodes of the view without a report."""
        self._phases: dict[int, str] = {}
        self._began_s = 0.0
        self._copy_s = 0.0
        self._own = self._all = True

    def installed(self, view: View) -> None:
        self._view, self._phases = view, {}
        self._began_s, self._copy_s, self._own, self._all = time.monotonic(), 0.0, False, False
        self._reports = {key: report for key, report in self._reports.items() if key[0] >= view.generation}
        self._missing = {
            node for node, name in enumerate(view.nodes) if name >= 0 and (view.generation, node) not in self._reports
        }
        self._look()

    def moved(self, slot: int, phase: str) -> None:
        if self._own:
            return
        if self._phases.get(slot) == "copy" != phase:
            self._copy_s = time.monotonic() - self._began_s
        self._phases[slot] = phase
        self._look()

    def heard(self, node: int, message: Settled) -> None:
        if message.generation >= self._view.generation:
            self._receive(node, message)
            self._look()

    def heard_all(self, message: AllSettled) -> None:
        if message.generation >= self._view.generation:
            for node, report in message.reports:
                self._receive(node, report)
            self._look()

    def _receive(self, node: int, message: Settled) -> None:
        self._reports[message.generation, node] = message
        if message.generation == self._view.generation:
            self._missing.discard(node)

    def _look(self) -> None:
        view, me = self._view, self._slots.node
        if not self._own and all(self._is_there(slot.index) for slot in self._slots.in_view):
            self._own = True
            mine = Settled(generation=view.generation, instance=self._instance, copy_s=self._copy_s)
            self._receive(me, mine)
            if me != (first := self._first(view)):
                self._links.send(first, mine)
        if self._all or self._missing:
            return
        self._all = True
        reports = {node: self._reports[view.generation, node] for node, name in enumerate(view.nodes) if name >= 0}
        if me == self._first(view):
            self._links.broadcast(AllSettled(generation=view.generation, reports=tuple(reports.items())))
        self._settled(view, reports)

    @staticmethod
    def _first(view: View) -> int:
        return next(node for node, name in enumerate(view.nodes) if name >= 0)

    def _is_there(self, slot: int) -> bool:
        return not self._slots.in_process or self._phases.get(slot, "recover") not in ON_THE_WAY
