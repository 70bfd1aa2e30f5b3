"""
The planned change of a job's size: what was asked for, and when all ranks leave for a view of that many.

Whoever is asked tells all launchers; that of rank 0 announces the change, once there are processes for it and the
generation has come together. Ranks leave as they do where a node gives its ranks away, so nothing is done again.
"""

import time
from collections.abc import Callable

from holdfast_runtime import membership
from holdfast_runtime.launcher.generation.departure import Departure
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.launcher.links import SizeAsked
from holdfast_runtime.membership import Asked, View

LOOK_S = 0.5


class Resizing(Part):
    """
    One launcher's part in it.

    Args:
        clock: Seconds. Default: the machine's
    """

    def __init__(self, context: Context, *, departure: Departure, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(context)
        self._sizes, self._processes = self._options.world_sizes, self._options.processes
        self._departure = departure
        self._clock = clock
        self._settled = self._announced = 0
        """Generations."""
        self._there, self._since_s = 0, clock()

    def ask(self, nodes: int) -> str:
        refusal = self._refusal(nodes)
        if not refusal:
            asked = Asked(self._slots.asked.serial + 1, nodes * self._processes)
            self.heard(asked)
            self._links.broadcast(SizeAsked(asked))
        return refusal

    def heard(self, asked: Asked) -> None:
        if asked != membership.newest((self._slots.asked, asked)):
            return
        self._slots.asked = asked
        self._journal.tell(f"resize requested: {asked.ranks // self._processes} nodes")
        self._look()

    def up(self, node: int) -> None:
        if self._slots.asked.serial:
            self._links.send(node, SizeAsked(self._slots.asked))

    def installed(self, view: View) -> None:
        self._slots.asked = membership.newest((self._slots.asked, view.asked))

    def settled(self, view: View) -> None:
        first, self._settled = not self._settled, view.generation
        if first and self._sizes:
            self._look_again()

    def _refusal(self, nodes: int) -> str:
        if not self._sizes:
            return "the job is not elastic; begin it with --nnodes MIN:MAX or --sizes"
        sizes = [size // self._processes for size in self._sizes]
        if nodes not in sizes:
            return f"{nodes} nodes are asked for; allowed: {', '.join(map(str, sizes))}"
        if self._ending.begun or self._ending.some_finished or self._slots.some_finished:
            return "the job ends"
        if not self._slots.in_process:
            return "the script does not use holdfast_runtime, and would begin again as a whole"
        return ""

    def _look_again(self) -> None:
        if not self._ending.begun:
            self._look()
            self._later(LOOK_S, self._look_again)

    def _look(self) -> None:
        view, now_s = self._slots.view, self._clock()
        there = len(view.ranks) + self._slots.warm + self._departure.spares
        if there != self._there:
            self._there, self._since_s = there, now_s
        speaks = bool(view.ranks) and view.ranks[0].slot.node == self._slots.node
        together = self._settled == view.generation != self._announced and not self._slots.requested
        ends = self._ending.begun or self._ending.some_finished or self._slots.some_finished
        if not (speaks and together and self._slots.in_process) or ends:
            return
        size = membership.change(
            self._sizes,
            current=len(view.ranks),
            asked=self._slots.asked.ranks,
            there=there,
            steady_s=now_s - self._since_s,
        )
        if size:
            self._announced = view.generation
            self._departure.announce(f"the job goes on with {size} ranks in place of {len(view.ranks)}")
