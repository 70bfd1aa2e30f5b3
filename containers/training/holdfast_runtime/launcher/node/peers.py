"""The other launchers of the job: waited for at the beginning, heard, and seen to be lost."""

import asyncio
import contextlib
import time

from holdfast_common import kinds
from holdfast_runtime.control import Keys
from holdfast_runtime.launcher.generation import (
    Context,
    Part,
)
from holdfast_runtime.launcher.links import (
    AllSettled,
    BuildAt,
    BuiltAt,
    ChangeAt,
    ChangedAt,
    Done,
    HandOverAt,
    LinkMessage,
    RaisedAt,
    Settled,
    SizeAsked,
    Spares,
    Trouble,
    Warm,
    identity_of,
)
from holdfast_runtime.launcher.node.parts import Parts
from holdfast_runtime.overlay import Member

BEGINNINGS = 10
"""Restarts of a launcher; two that live in one place would otherwise take it from each other for ever."""
LOOK_S = 0.2
"""Interval of polls of the clock, and of the start of the job, while no launcher connects."""
GRACE_S = 10.0
"""Once enough launchers are there, how long the job waits for the others before it begins."""


class Peers(Part):
    def __init__(self, context: Context, parts: Parts) -> None:
        super().__init__(context)
        self._parts = parts
        self._beginnings = BEGINNINGS
        self._came = asyncio.Event()
        """A launcher is in reach that was not."""

    async def come(self) -> bool:
        """Wait until the job can begin, or has begun without this launcher; False where too few came in time."""
        options = self._options
        began, enough_s = time.monotonic(), 0.0
        while len(self._links.up) + 1 < options.nodes and not self._slots.view.generation:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._came.wait(), LOOK_S)
            self._came.clear()
            waited = time.monotonic() - began
            if waited > options.deadlines.start:
                missing = sorted(set(range(options.nodes)) - self._links.up - {options.node_rank})
                why = "; ".join(("", *self._links.strangers))
                self._ending.give_up(f"nodes {missing} did not join within {options.deadlines.start:g} s{why}")
                return False
            enough = len(self._links.up) + 1 >= min(options.sizes, default=options.nodes - options.spare_nodes)
            enough_s = enough_s or (waited if enough else 0.0)
            if enough and waited - enough_s > GRACE_S:
                break
        return True

    def restart(self) -> bool:
        named = self._slots.view.generation and self._parts.generations.belongs_to(self._slots.view)
        if self._ending.begun or named or not self._beginnings:
            return False
        self._beginnings -= 1
        self._parts.generations.forget()
        self._later(self._deadlines.start, self._expect_company)
        return True

    def up(self, member: Member) -> None:
        self._came.set()
        self._ending.forget(member.node)
        self._parts.witness.link.claim_changed()
        self._parts.departure.up(member.node)
        self._parts.resizing.up(member.node)
        self._parts.generations.agreement.found(member.node, identity_of(member.uid))

    def linked(self, node: int) -> None:
        if self._slots.in_process:
            self._links.send(node, Warm())
        self._parts.generations.agreement.linked(node)

    def down(self, node: int, why: str) -> None:
        if self._ending.has_finished(node) or self._ending.begun:
            return
        view = self._slots.view
        self._parts.departure.down(node)
        left = view.generation > 0 and view.nodes[node] < 0
        if left:
            self._journal.tell(f"node {node} has left: {why}")
        else:
            self._journal.tell_lost(node, f"node {node} is lost: {why}")
        if view.nodes[node] >= 0 and view.generation > 0:
            self._journal.died("node")
            self._journal.event(kinds.LAUNCHER_LOST, evidence=why, lost=node)
            self._parts.generations.note_trouble()
        self._parts.generations.agreement.lost(node)
        self._ending.node_lost(node)

    def receive(self, node: int, message: LinkMessage) -> None:
        if isinstance(message, Trouble):
            if message.generation == self._slots.view.generation and not self._ending.begun:
                self._parts.generations.note_trouble(planned=message.planned)
                self._parts.generations.agreement.trouble(message.reason)
        elif isinstance(message, HandOverAt):
            self._parts.departure.announced(node, message)
        elif isinstance(message, BuildAt):
            self._parts.building.asked(node, message)
        elif isinstance(message, BuiltAt):
            self._parts.building.answered(node, message)
        elif isinstance(message, SizeAsked):
            self._parts.resizing.heard(message.asked)
        elif isinstance(message, Spares):
            self._parts.departure.spares_of(node, message.ready)
        elif isinstance(message, Settled):
            self._parts.settling.heard(node, message)
        elif isinstance(message, AllSettled):
            self._parts.settling.heard_all(message)
        elif isinstance(message, RaisedAt):
            self._parts.judgement.heard(message.error)
        elif isinstance(message, Warm):
            self._parts.places.warm()
        elif isinstance(message, Keys | ChangeAt | ChangedAt):
            self._parts.keys.from_launcher(message)
        elif isinstance(message, Done):
            self._ending.peer_done(node, message)
        else:
            self._parts.generations.agreement.message(node, message)  # type: ignore[arg-type]  # Beat never gets here

    def _expect_company(self) -> None:
        if not self._links.up and not self._ending.begun:
            self._ending.give_up(f"no launcher accepted this one again within {self._deadlines.start:g} s")
