"""Drives the membership protocol: delivers its messages and timers, and carries out what it decides."""

import asyncio
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from holdfast_runtime import membership
from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import Policy, Status, View

RETRY = 1.1
"""A proposal is repeated only after the one before had its time."""
PROPOSAL_PER_LAUNCHER_S = 0.01
"""Time that a proposal may take for each launcher, before one that finds another process makes its own."""


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Effects of the protocol."""

    send: Callable[[int, membership.Message], None]
    leave: Callable[[int, str], None]
    install: Callable[[View], None]
    await_answers: Callable[[frozenset[int]], None]
    """From these launchers, and from no others."""
    stop: Callable[[str], None]
    policy: Callable[[], Policy]
    spread: Callable[[frozenset[int], membership.Message], None] | None = None
    """To several launchers at once."""


class Agreement:
    """
    One launcher's part.

    Args:
        slots: Their view and their reason for the next one follow it.
    """

    def __init__(
        self,
        *,
        slots: LocalSlots,
        size: int,
        incarnation: int,
        identity: int | None = None,
        deadlines: Deadlines,
        effects: Effects,
    ) -> None:
        self._slots = slots
        self._become(membership.start(me=slots.node, size=size, incarnation=incarnation, identity=identity))
        self._deadlines = deadlines
        self._effects = effects
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._requested_s = 0.0
        self._asked_s = -math.inf
        """When another launcher proposed last."""
        self._closed = False
        self.patient = True
        """Whether processes may still be starting for the first time."""

    @property
    def awaited(self) -> list[int]:
        return sorted(self._node.awaited)

    def trouble(self, reason: str) -> None:
        if not self._node.requested:
            self._requested_s = self._loop.time()
            self._take(membership.trouble(self._node, reason))

    def found(self, peer: int, identity: int) -> None:
        self._take(membership.found(self._node, peer, identity))

    def linked(self, peer: int) -> None:
        if self._node.committed.generation:
            self._effects.send(peer, membership.Commit(self._node.committed))

    def lost(self, peer: int) -> None:
        if not self._node.requested:
            self._requested_s = self._loop.time()
        self._take(membership.lost(self._node, peer))
        if self._node.requested and not self._node.turn:
            self._set(membership.PROPOSE, 0.0)

    def witness_found(self, identity: int) -> None:
        self._take(membership.witness_found(self._node, identity))
        if self._node.committed.generation:
            self._effects.send(self._node.size, membership.Commit(self._node.committed))

    def witness_lost(self) -> None:
        self._become(membership.witness_lost(self._node))

    def ready(self, status: Status) -> None:
        self._take(membership.ready(self._node, status))

    def changed(self) -> None:
        """Propose a process that the last proposal did not know, once that proposal had its time."""
        if self._node.requested:
            over_s = self._asked_s + PROPOSAL_PER_LAUNCHER_S * self._node.size
            self._set(membership.PROPOSE, max(0.0, over_s - self._loop.time()))

    def message(self, sender: int, message: membership.Message) -> None:
        if self._closed:
            return
        was = self._node.requested
        if isinstance(message, membership.Prepare) and sender != self._node.me:
            self._asked_s = self._loop.time()
        self._take(membership.message(self._node, sender, message, decide=self._decide))
        if self._node.requested and not was:
            self._requested_s = self._loop.time()

    def close(self) -> None:
        """Change nothing any more: another one may follow, with another identity."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _decide(self, committed: View, statuses: tuple[Status, ...]) -> View | str:
        chosen = membership.next_view(committed, statuses, policy=self._effects.policy())
        # With all launchers heard, nobody is left who could have the state that is missing.
        if isinstance(chosen, membership.NoFurtherView) and len(statuses) == self._node.size:
            self._loop.call_soon(self._effects.stop, f"{self._node.requested}; {chosen}")
        return chosen

    def _take(self, result: tuple[membership.Node, list[membership.Action]]) -> None:
        node, actions = result
        self._become(node)
        for _, same in itertools.groupby(actions, key=_message_id):
            self._carry_out([*same])
        self._effects.await_answers(self._node.awaited)

    def _become(self, node: membership.Node) -> None:
        self._node = node
        self._slots.view, self._slots.requested = node.committed, node.requested

    def _carry_out(self, actions: list[membership.Action]) -> None:
        to = []
        for action in actions:
            if isinstance(action, membership.Send):
                to.append(action.to)
            elif isinstance(action, membership.Leave):
                self._effects.leave(action.generation, action.reason)
            elif isinstance(action, membership.Install):
                self._effects.install(action.view)
            elif isinstance(action, membership.SetTimer):
                self._set(action.name, self._delay_s(action))
            else:
                self._effects.stop(action.reason)
        if to and isinstance(actions[0], membership.Send):
            self._say(to, actions[0].message)

    def _say(self, to: list[int], message: membership.Message) -> None:
        others = frozenset(to) - {self._node.me, self._node.size}
        if self._node.me in to:
            self._loop.call_soon(self.message, self._node.me, message)
        if len(others) > 1 and self._effects.spread is not None:
            self._effects.spread(others, message)
            to = [self._node.size] * (self._node.size in to)
        for other in to:
            if other != self._node.me:
                self._effects.send(other, message)

    def _delay_s(self, action: membership.SetTimer) -> float:
        if action.name == membership.GIVE_UP:
            return self._deadlines.minority
        if action.name == membership.MEET:
            return self._deadlines.heartbeat
        if action.name == membership.GATHER:
            return self._deadlines.ready * action.turn
        return self._deadlines.ready * RETRY * action.turn

    def _set(self, name: str, delay_s: float) -> None:
        before = self._timers.pop(name, None)
        if before is not None:
            before.cancel()
        self._timers[name] = self._loop.call_later(delay_s, self._fired, name)

    def _fired(self, name: str) -> None:
        if name == membership.GIVE_UP and self._may_wait():
            self._set(name, self._deadlines.minority)
            return
        self._take(membership.timer(self._node, name, decide=self._decide))

    def _may_wait(self) -> bool:
        waited_s = self._loop.time() - self._requested_s
        if self._node.voters < self._node.majority and self._node.committed.generation:
            return False
        return waited_s < (self._deadlines.start if self.patient else self._deadlines.view)


def _message_id(action: membership.Action) -> int:
    return id(action.message) if isinstance(action, membership.Send) else 0
