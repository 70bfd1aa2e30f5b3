"""
Connections to some launchers, and messages to all others through them. Up to 9 launchers are all connected.

``holdfast_runtime.overlay`` decides; this is its driver.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.peers import Address
from holdfast_runtime.launcher.links.wire import LINK, Disconnect, LinkMessage, LinkNeed
from holdfast_runtime.overlay import NEIGHBOURS, Deliver, Down, Member, Overlay, Packet, Rival, Up, Write

SETTLE_S = 0.05
TEND_S = 0.2
FIRST_CALLS = 2 * NEIGHBOURS
"""Addresses that a launcher calls at once, of those that it was given."""
CALL_S = 1.0
"""Between two calls to one that may not be there."""
PART_AFTER_S = 10.0
"""A connection that neither side needs is ended then: while launchers come, who needs which changes all the time."""
REDIALLERS = 2
"""Launchers on each side of the ring that call one that is gone, for it may have been cut off."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Callbacks of the links."""

    links: dict[int, Link]
    call: Callable[[Address], None]
    """Once, unless it is being called."""
    up: Callable[[Member], None]
    down: Callable[[int, str], None]
    message: Callable[[int, LinkMessage], None]
    rival: Callable[[int], None]
    patience_s: Callable[[], float]
    """How long another launcher may take to answer."""


class OverlayDriver:
    def __init__(
        self, own: Member, *, known: tuple[Address, ...], size: int, deadlines: Deadlines, hooks: Hooks
    ) -> None:
        self._own = own
        self._known = known
        self._size = size
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._overlay = Overlay(own.node, {own.node: own}, heartbeat_s=deadlines.heartbeat)
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._restless = True
        """Whether something has changed since connections were last looked at."""
        self._tending: asyncio.Handle = self._loop.call_soon(self._tend)
        self._called_s: dict[Address, float] = {}
        self._failing_s: dict[int, float] = {}
        """Since when a neighbour cannot be called."""
        self._since_s: dict[int, float] = {}
        self._ended: dict[int, tuple[Member | None, str]] = {}
        """By node, why its last connection ended; for its launcher as known then, since a refutation makes it stale."""
        self._kept: dict[int, bool] = {}
        """By neighbour, the last report to it: its connection is needed."""
        self._asked_s = 0.0
        self._up: frozenset[int] | None = None
        self._closed = False

    @property
    def up(self) -> frozenset[int]:
        if self._up is None:
            self._up = frozenset(self._overlay.roster.ring.nodes()) - {self._own.node}
        return self._up

    def address_of(self, node: int) -> Address | None:
        """Address of a launcher; None if it is not known."""
        member = self._overlay.roster.members.get(node)
        return (member.host, member.port) if member is not None else None

    def beside(self) -> frozenset[int]:
        return self._overlay.roster.ring.beside(self._own.node)

    def close(self, *, last: bool) -> None:
        if last:
            self._carry_out()
        self._closed = True
        for handle in (self._soon, self._timer, self._tending):
            if handle is not None:
                handle.cancel()

    def linked(self, link: Link) -> None:
        peer = link.peer
        self._since_s[peer.node] = time.monotonic()
        self._kept[peer.node] = True
        self._ended.pop(peer.node, None)
        member = Member(peer.node, peer.uid, peer.incarnation, peer.host, peer.port)
        known = self._overlay.roster.members.get(peer.node)
        self._overlay.link(known if known is not None and known.uid == peer.uid else member, time.monotonic())
        self._failing_s.pop(peer.node, None)
        self._changed()

    def ended(self, link: Link, why: str) -> None:
        if link.has_received:
            self._ended[link.peer.node] = (self._overlay.roster.members.get(link.peer.node), why)
        # Who has given up a handshake that took it too long is not gone; whether it answers is soon known.
        self._overlay.unlink(link.peer.node, time.monotonic(), parted=not link.has_received)
        self._changed()

    def heard(self, link: Link, message: Packet | LinkNeed | Disconnect) -> None:
        node = link.peer.node
        if isinstance(message, Packet):
            self._overlay.hear(node, message, time.monotonic())
            self._later()
        elif isinstance(message, LinkNeed):
            link.needed = message.needed
            self._consider(link)
        elif self._hooks.links.get(node) is link:
            self._part(link, resend=message.over)

    def send(self, node: int, message: LinkMessage) -> None:
        self._overlay.send(node, LINK.encode(message).decode(), time.monotonic())
        self._later()

    def spread(self, line: bytes, *, skip: frozenset[int] = frozenset()) -> None:
        self._overlay.spread(line.decode(), time.monotonic(), skip=tuple(sorted(skip)))
        self._later()

    def failed(self, address: Address) -> None:
        now_s = time.monotonic()
        for node in self._overlay.desired() - self._overlay.linked:
            if self.address_of(node) == address:
                if now_s - self._failing_s.setdefault(node, now_s) > self._hooks.patience_s():
                    self._overlay.suspect(node, now_s)
                    self._changed()
                return

    def _changed(self) -> None:
        self._later()
        if not self._restless and not self._closed:
            self._restless = True
            self._tending.cancel()
            self._tending = self._loop.call_later(SETTLE_S, self._tend)

    def _later(self) -> None:
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._carry_out)

    def _carry_out(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        links = self._hooks.links
        for effect in self._overlay.effects(time.monotonic()):
            if self._closed:
                return  # it began anew, as another launcher
            if isinstance(effect, Write):
                link = links.get(effect.node)
                if link is not None:
                    link.write(LINK.encode(effect.packet))
            elif isinstance(effect, Deliver):
                self._hooks.message(effect.origin, LINK.decode(effect.body.encode()))
            elif isinstance(effect, Up):
                self._up = None
                self._hooks.up(effect.member)
                self._changed()
            elif isinstance(effect, Down):
                self._up = None
                self._down(effect)
            elif isinstance(effect, Rival):
                self._hooks.rival(effect.incarnation + 1)
        self._wait()

    def _down(self, effect: Down) -> None:
        link = self._hooks.links.get(effect.node)
        if link is not None:
            link.write(LINK.encode(Disconnect(over=True)))  # if it is well it must not take this one for lost
            link.end(effect.why)
        before, why = self._ended.pop(effect.node, (None, ""))
        lost = self._overlay.roster.members.get(effect.node)
        same = before is not None and lost is not None and (before.uid, before.turn) == (lost.uid, lost.turn)
        self._hooks.down(effect.node, why if same else effect.why)
        self._changed()

    def _wait(self) -> None:
        due_s = self._overlay.due_s
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_s is not None:
            self._timer = self._loop.call_later(max(0.0, due_s - time.monotonic()), self._carry_out)

    def _tend(self) -> None:
        self._restless = False
        now_s, links = time.monotonic(), self._hooks.links
        desired = self._overlay.desired()
        for node in desired - links.keys():
            self._call(self.address_of(node), now_s, every_s=TEND_S)
        for node in self._lost():
            self._call(self.address_of(node), now_s, every_s=CALL_S)
        self._call_unknown(now_s)
        for node, link in [*links.items()]:
            needed = node in desired or now_s - self._since_s.get(node, now_s) < PART_AFTER_S
            if needed != self._kept.get(node, True):
                self._kept[node] = needed
                link.write(LINK.encode(LinkNeed(needed)))
                self._consider(link)
        if not self._restless:  # else something has changed meanwhile, and they are looked at again soon
            more = desired - links.keys() or len(self._overlay.roster.ring) < self._size
            self._tending = self._loop.call_later(TEND_S if more else CALL_S, self._tend)

    def _lost(self) -> list[int]:
        roster = self._overlay.roster
        gone = [member.node for member in roster.members.values() if not member.here]
        return [node for node in gone if self._own.node in roster.ring.beside(node, REDIALLERS)]

    def _call(self, address: Address | None, now_s: float, *, every_s: float) -> None:
        if address is not None and now_s - self._called_s.get(address, -every_s) >= every_s:
            self._called_s[address] = now_s
            self._hooks.call(address)

    def _call_unknown(self, now_s: float) -> None:
        roster = self._overlay.roster
        every_s = CALL_S if self._overlay.linked else TEND_S
        if len(roster.ring) >= self._size or now_s - self._asked_s < every_s:
            return
        book = {(member.host, member.port) for member in roster.members.values()}
        unknown = [address for address in self._known if address not in book]
        calls = 1 if self._asked_s and self._overlay.linked else FIRST_CALLS
        self._asked_s = now_s
        for address in random.sample(unknown, min(calls, len(unknown))):
            self._hooks.call(address)

    def _consider(self, link: Link) -> None:
        unneeded = not link.needed and not self._kept.get(link.peer.node, True)
        if unneeded and self._own.node > link.peer.node and self._hooks.links.get(link.peer.node) is link:
            link.write(LINK.encode(Disconnect()))
            self._part(link, resend=False)

    def _part(self, link: Link, *, resend: bool) -> None:
        self._hooks.links.pop(link.peer.node, None)
        link.replaced = True
        if not resend:
            link.finish()
        self._overlay.unlink(link.peer.node, time.monotonic(), parted=True, resend=resend)
        self._changed()
