"""
A launcher and the witness: which of its memories is the run's, when a view should name it, and what may be lost.

The first view that is chosen with a link to it names it, at no cost. One that comes later, or comes back without its
memory, is named by the next view; where the loss of one more launcher would end the job, a view is asked for.
"""

import asyncio
import os
from typing import Protocol

from holdfast_common import kinds
from holdfast_runtime import membership
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.witness import OPEN, WitnessHandlers, WitnessLink, find_witness, is_of_use

STEADY = 3.0
"""Heartbeats that it has been in reach for before training is interrupted for its vote; twice as many each time."""


class Votes(Protocol):
    """The agreement that the witness votes in."""

    def witness_found(self, identity: int) -> None: ...
    def witness_lost(self) -> None: ...
    def witness_message(self, message: membership.Message) -> None: ...
    def interrupt(self, reason: str) -> bool:
        """Request another view. Return True if processes survive it, so that it costs them only a moment."""


class Witnessing(Part):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._votes: Votes
        """From the start on."""
        self._steady_s = STEADY * self._deadlines.heartbeat
        self._timer: asyncio.TimerHandle | None = None
        self._reported = ""
        self.link = WitnessLink(
            run_id=self._options.run_id,
            seat=self._options.nodes,
            token=self._options.token,
            deadlines=self._deadlines,
            handlers=WitnessHandlers(
                address=self._address,
                claim=self._claim,
                found=self._found,
                lost=self._lost,
                left=self._left,
                message=self._message,
                refused=self._refused,
            ),
        )

    @property
    def votes(self) -> bool:
        return 0 <= self.link.identity == self._slots.view.witness

    @property
    def may_be_lost(self) -> int:
        view, nodes = self._slots.view, self._options.nodes
        return max(0, sum(incarnation >= 0 for incarnation in view.nodes) + self.votes - (nodes // 2 + 1))

    def start(self, votes: Votes) -> None:
        self._votes = votes
        if is_of_use(self._options.witness, nodes=self._options.nodes):
            self.link.start()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.link.close()

    def installed(self) -> None:
        self.link.claim_changed()
        self._consider()
        if self.votes or self._slots.view.witness < 0:
            self.say_what_may_be_lost()
        else:  # this launcher has just been told which memory to join
            self._later(self._deadlines.heartbeat, self.say_what_may_be_lost)

    def say_what_may_be_lost(self) -> None:
        nodes, view = self._options.nodes, self._slots.view
        if nodes == 1 or not view.generation:
            return
        text = f"quorum: tolerates the loss of {self.may_be_lost} of {nodes} launchers"
        if self.votes and self.link.address is not None:
            text += f", with the witness at {self.link.address[0]} port {self.link.address[1]}"
        elif nodes % 2 == 0:
            text += "; a witness adds one"
        if text != self._reported:
            self._reported = text
            self._journal.tell(text)

    def _address(self) -> tuple[str, int] | None:
        return find_witness(self._options.witness, nodes=self._options.nodes, environment=os.environ)

    def _refused(self, why: str) -> None:
        self._journal.tell(f"witness: not used: {why}")

    def _message(self, message: membership.Message) -> None:
        self._votes.witness_message(message)

    def _claim(self) -> int | None:
        view, me = self._slots.view, self._options.node_rank
        if view.witness >= 0 and not self.link.has_forgotten(view.witness):
            return view.witness
        # One is enough to open another, and the next view tells the others which.
        first = not any(other < me for other in self._links.up)
        return OPEN if first and (view.generation or self._links.up) else None

    def _found(self, identity: int) -> None:
        self._votes.witness_found(identity)
        if self._slots.view.generation:
            self._journal.tell("witness: connected")
        self._consider()
        self.say_what_may_be_lost()

    def _lost(self, why: str) -> None:
        self._journal.tell(f"witness: lost: {why}")
        self._journal.event(kinds.WITNESS_LOST, evidence=why)
        self._votes.witness_lost()
        self.say_what_may_be_lost()

    def _left(self) -> None:
        self._journal.tell("witness: the view names another registration, switching to it")
        self._votes.witness_lost()

    def _consider(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_needed():
            self._timer = self._later(self._steady_s, self._ask)

    def _is_needed(self) -> bool:
        identity, view = self.link.identity, self._slots.view
        return bool(view.generation) and identity >= 0 and view.witness != identity and not self.may_be_lost

    def _ask(self) -> None:
        if self._is_needed() and self._votes.interrupt("the witness is back, and without its vote no loss is survived"):
            self._steady_s *= 2
