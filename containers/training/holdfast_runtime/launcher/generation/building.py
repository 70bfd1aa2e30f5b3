"""
Spares of a sharded job make their model before they have a rank, so that a recovery or a hand-over has only the state
to bring.

Each launcher tells its spares which rank they are built for, once the job trains. Before a launcher gives its ranks
away it has the spares of others built for just these. What a script cannot do alone is said once: spares stay as they
are then.
"""

from collections.abc import Callable, Mapping, Sequence

from holdfast_runtime.control import Build
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.launcher.links import BuildAt, BuiltAt
from holdfast_runtime.launcher.ranks import LocalSlot
from holdfast_runtime.membership import View, missing, to_build, to_take

AFTER_S = 1.0
"""After a generation has come together, and until it is looked again whether its first steps are done."""
FIRST_STEPS = 2
"""Of a generation, which are not to wait for what a spare does beside them on the same node."""
DEATHS = 2
"""Of spares that were being built: another one is not tried."""


class Building(Part):
    """
    One launcher's.

    Args:
        replace: Starts a process in place of one that has no rank and is of no use.
    """

    def __init__(self, context: Context, *, replace: Callable[[LocalSlot], None]) -> None:
        super().__init__(context)
        self._replace = replace
        self._trains = False
        """Whether the ranks of the view have been together for a while, and those here have done their first steps."""
        self._cold = False
        """Whether no spare here is built any more."""
        self._deaths = 0
        self._wished: dict[int, tuple[int, ...]] = {}
        """By node that gives its ranks away: those that spares here are to be built for."""
        self._asked: set[int] = set()
        """Nodes that are to build spares for ranks of this one."""
        self._then: Callable[[], None] = lambda: None

    def installed(self, view: View) -> None:
        """Begin a generation: what was requested in the last one is void."""
        self._trains = False
        self._wished.clear()
        self._asked.clear()
        if not any(item.slot.node == self._slots.node for item in view.ranks):
            self._later(AFTER_S, self._begin, view.generation)

    def settled(self, view: View) -> None:
        self._later(AFTER_S, self._begin, view.generation)

    def look(self) -> None:
        spares = [slot for slot in self._slots if slot.spare]
        if self._trains and self._able and not self._slots.requested:
            wished = [rank for ranks in self._wished.values() for rank in ranks]
            for rank in missing(wished, built=[(slot.built, slot.moves) for slot in spares]):
                self._build_exactly(rank, spares, wished=wished)
            for slot in spares:
                if slot.spare and slot.built < 0:
                    built = {slot.built for slot in self._slots}
                    self._build(slot, to_build(self._slots.view, node=self._slots.node, built=built))
        for node, ranks in list(self._wished.items()):
            there = [(slot.built, slot.moves) for slot in spares if _is_built(slot)]
            if not self._able or not missing(ranks, built=there):
                del self._wished[node]
                self._links.send(node, BuiltAt(generation=self._slots.view.generation))

    def cold(self, slot: LocalSlot, reason: str) -> None:
        if not self._cold:
            self._stop(f"one cannot make its model before it has a rank, or not do a step with it: {reason}")
        if slot.spare:  # one that was given a rank meanwhile ends, and that rank is lost
            self._replace(slot)
        self.look()

    def died(self) -> None:
        self._deaths += 1
        if self._deaths >= DEATHS and not self._cold:
            self._stop(f"{self._deaths} spares have died while they made their model")
        self.look()

    def asked(self, node: int, message: BuildAt) -> None:
        if message.generation == self._slots.view.generation:
            self._wished[node] = message.ranks
            self.look()

    def answered(self, node: int, message: BuiltAt) -> None:
        if message.generation == self._slots.view.generation and node in self._asked:
            self._asked.discard(node)
            if not self._asked:
                self._then()

    def for_others(self, ranks: Sequence[int], spares: Mapping[int, int], then: Callable[[], None]) -> None:
        """
        Have spares of other nodes built for ranks of this one, and go on then: at once where the job is not sharded.
        """
        requests = to_take(ranks, spares=spares) if self._slots.survives is not None else {}
        if not requests:
            then()
            return
        self._asked, self._then = {*requests}, then
        for node, taken in requests.items():
            self._links.send(node, BuildAt(generation=self._slots.view.generation, ranks=taken))
        self._later(self._deadlines.view, self._waited, self._slots.view.generation)

    @property
    def _able(self) -> bool:
        return not (self._cold or self._ending.begun or self._slots.leaving or self._slots.quarantined)

    def _begin(self, generation: int) -> None:
        view, here = self._slots.view, self._slots
        if generation != view.generation or self._ending.begun:
            return
        if here.in_view and here.known_step < view.resume_step + FIRST_STEPS:
            self._later(AFTER_S, self._begin, generation)
            return
        self._trains = True
        self.look()

    def _waited(self, generation: int) -> None:
        if generation == self._slots.view.generation and self._asked:
            self._asked.clear()
            self._then()

    def _build_exactly(self, rank: int, spares: Sequence[LocalSlot], *, wished: Sequence[int]) -> None:
        slot = next((slot for slot in spares if slot.spare and slot.built < 0), None)
        other = next((slot for slot in spares if slot.spare and slot.built not in wished), None)
        if slot is not None:
            self._build(slot, rank)
        elif other is not None:
            self._replace(other)

    def _build(self, slot: LocalSlot, rank: int) -> None:
        ready, ranks_here = slot.ready, bool(self._slots.in_view)
        if rank < 0 or ready is None or not ready.buildable or (ready.buildable == "apart" and ranks_here):
            return
        view = self._slots.view
        done = max(view.resume_step, self._slots.known_step)
        slot.built = rank
        slot.send(Build(rank=rank, world_size=len(view.ranks), step=max(0, done - 1)))
        self._later(self._deadlines.start, self._late, slot, slot.incarnation, rank)

    def _late(self, slot: LocalSlot, incarnation: int, rank: int) -> None:
        if slot.spare and slot.built == rank and slot.incarnation == incarnation and not _is_built(slot):
            limit = f"{self._deadlines.start:g} s"
            self._stop(f"a spare did not build the model of rank {rank} within {limit}")
            self._replace(slot)

    def _stop(self, reason: str) -> None:
        self._cold = True
        self._journal.tell(f"node {self._slots.node}: spare warm-up failed: {reason}; spares will start cold")


def _is_built(slot: LocalSlot) -> bool:
    return slot.built >= 0 and slot.ready is not None and slot.ready.built == slot.built
