"""Current generation of this launcher, and the change to the next one."""

import asyncio
import time
from collections.abc import Callable, Mapping

from holdfast_runtime.launcher.generation import (
    SILENT_AFTER_S,
    Agreement,
    Context,
    Effects,
    Part,
    Record,
    Witnessing,
)
from holdfast_runtime.launcher.links import Trouble
from holdfast_runtime.launcher.node.carrier import Carrier
from holdfast_runtime.launcher.watch import Judgement
from holdfast_runtime.membership import Message, Policy, View

SPARE_S = 15.0
"""An elastic job waits so long for a process in place of a lost one, where a launcher in reach fills its place."""
VOTE_AFTER_S = 0.3
"""Time for a launcher that is back to meet all the others."""


class Generations(Part):
    """
    One launcher's.

    Args:
        begins: Called with each view before anything else is done with it.
        began: Called with each view when the local processes have been told of it.
    """

    def __init__(
        self,
        context: Context,
        *,
        witness: Witnessing,
        judgement: Judgement,
        carrier: Carrier,
        begins: Callable[[View], None],
        began: Callable[[View], None],
        record: Record,
    ) -> None:
        super().__init__(context)
        self._witness = witness
        self._judgement = judgement
        self._carrier = carrier
        self._begins = begins
        self._record = record
        self._began = began
        self._loop = asyncio.get_running_loop()
        self._agreement: Agreement | None = None
        self._prepared = False
        self._troubled_s = 0.0
        self._homes: dict[int, tuple[int, int]] = {}
        """Node and slot of each rank in the committed view."""
        self._why = ""
        """Reason for the newest generation."""
        self._planned = False
        """Whether it follows nothing that broke."""
        self.first = True
        """No view of live processes was committed yet."""

    @property
    def unanswered(self) -> list[int]:
        return self._agreement.awaited if self._agreement is not None else []

    @property
    def agreement(self) -> Agreement:
        if self._agreement is None:
            self._agreement = Agreement(
                slots=self._slots,
                size=self._options.nodes,
                incarnation=self._links.incarnation,
                identity=self._links.identity,
                deadlines=self._deadlines,
                effects=Effects(
                    send=self._send,
                    leave=self._leave,
                    install=self.install,
                    await_answers=self._links.watch_also,
                    stop=self._ending.give_up,
                    policy=self._policy,
                    spread=self._links.spread,
                ),
            )
            self.witness_found(self._witness.link.identity)
        return self._agreement

    def belongs_to(self, view: View) -> bool:
        if not view.generation:
            return self._links.incarnation == 0
        return view.nodes[self._slots.node] == self._links.identity

    def begin(self) -> None:
        self._prepared = True
        if not self._slots.view.generation:
            self.agreement.trouble("the job begins")
            self.left()

    def forget(self) -> None:
        self.close()
        self._agreement = None
        self._slots.view, self._slots.requested = View(generation=0, nodes=(0,) * self._options.nodes), ""

    def close(self) -> None:
        if self._agreement is not None:
            self._agreement.close()

    def witness_found(self, identity: int) -> None:
        if self._agreement is not None and identity >= 0:
            self._agreement.witness_found(identity)

    def witness_lost(self) -> None:
        if self._agreement is not None:
            self._agreement.witness_lost()

    def witness_message(self, message: Message) -> None:
        self.agreement.message(self._options.nodes, message)

    def interrupt(self, reason: str) -> bool:
        if self._slots.in_process and not self.first and not self._slots.leaving:
            self.trouble(reason)
        return self._slots.in_process

    def trouble(self, reason: str, *, planned: bool = False) -> None:
        if self._ending.begun or self._slots.requested or (self._slots.in_process and self._slots.some_finished):
            return
        self.note_trouble(planned=planned)
        self._links.broadcast(Trouble(generation=self._slots.view.generation, reason=reason, planned=planned))
        self.agreement.trouble(reason)

    def note_trouble(self, *, planned: bool = False) -> None:
        if not self._slots.requested:
            self._troubled_s, self._planned = time.monotonic(), planned
            if self._options.sizes:
                self._later(SPARE_S, self._waited)
            self._record.troubled(planned=planned)

    def _waited(self) -> None:
        if self._slots.requested and self._has_waited:
            self.agreement.changed()

    @property
    def _has_waited(self) -> bool:
        return not self._troubled_s or time.monotonic() - self._troubled_s >= SPARE_S

    def left(self) -> None:
        """Say how the local processes are, once none of them is in a collective."""
        met = self._prepared or self._slots.view.generation
        if met and self._slots.requested and not self._ending.begun and self._slots.all_left(first=self.first):
            host = self._options.peers.host
            self._record.left()
            self.agreement.ready(self._slots.status(incarnation=self._links.identity, host=host))

    def install(self, view: View) -> None:
        me = self._slots.node
        self._links.formed()
        self._begins(view)
        # A launcher that took another's place has none of its ranks.
        mine = [item for item in view.ranks if item.slot.node == me] if self.belongs_to(view) else []
        before, self._homes = (
            self._homes,
            {rank: (item.slot.node, item.slot.index) for rank, item in enumerate(view.ranks)},
        )
        self._slots.world_size = len(view.ranks) or self._slots.world_size
        self._slots.go_on(view)
        for slot in self._slots:
            slot.rank = next((item.rank for item in mine if item.slot.index == slot.index), -1)
            place = self._slots.place_of(slot, launcher=self._links.identity)
            slot.given = next((item.rank for item in view.leavers if item.slot == place), -1)
        self._tell(view, before)
        self._witness.installed()
        if not self.belongs_to(view) and not self._slots.leaving:
            self._later(VOTE_AFTER_S, self._ask_for_a_vote)
        self._record.installed(view)
        if not self._slots.in_process:
            self._later(SILENT_AFTER_S, self._record.silent)
            self._carrier.restart(view)
            self._began(view)
            return
        if any(item.port for item in view.ranks):
            self.first = self.agreement.patient = False
            self._judgement.installed(view, reason=self._why)
        here = bool(mine) or any(item.slot.node == me for item in view.leavers)
        for reason in self._carrier.give(view, mine=here):
            self._loop.call_soon(self.trouble, reason)
        self._began(view)

    def _tell(self, view: View, before: Mapping[int, tuple[int, int]]) -> None:
        moved = {rank: place[0] for rank, place in self._homes.items() if before.get(rank, place) != place}
        self._journal.view(
            view,
            seconds=time.monotonic() - self._troubled_s if self._troubled_s else 0.0,
            moved={} if self.first else moved,
            recovered=view.generation > 1 and not self.first and not self._planned,
        )

    def _ask_for_a_vote(self) -> None:
        if not self.belongs_to(self._slots.view) and not self._witness.may_be_lost:
            self.trouble(f"node {self._slots.node} is back, and without its vote the next loss could not be survived")

    def _policy(self) -> Policy:
        return Policy(
            world_size=self._options.world_size,
            lost_steps_allowed=self._options.lost_steps_allowed,
            sizes=self._options.world_sizes,
            waited=self._has_waited,
        )

    def _send(self, to: int, message: Message) -> None:
        if to == self._options.nodes:
            self._witness.link.send(message)
        else:
            self._links.send(to, message)

    def _leave(self, generation: int, reason: str) -> None:
        self._why = reason
        if generation > 1:
            self._journal.tell(f"starting generation {generation}: {reason}")
        self._carrier.leave(generation, reason)
        self._loop.call_soon(self.left)
