"""
Launchers in virtual time: the state machines of ``holdfast_runtime.overlay`` and ``holdfast_runtime.membership`` as
they are, on a network and processors that are numbers.

Assumed: a hop takes 0.25 ms and a byte 0.8 ns (10 Gbit/s); a launcher handles one thing after the other, 60 us for each
packet, 15 us for each letter, suspicion and news in it, 40 us for each KB that it reads itself, 2 us for each KB
that it passes on and, once a view is agreed on, 8 us for each of its ranks; connections of a killed process are seen to
be closed after 0.5 ms; local processes leave within 10 ms.
"""

import functools
import heapq
import itertools
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast_runtime import membership
from holdfast_runtime.launcher.links import LINK
from holdfast_runtime.overlay import Deliver, Down, Member, Overlay, Packet, Ring, Up, Write

HOP_S, BYTE_S = 0.25e-3, 0.8e-9
PACKET_S, ITEM_S, READ_KB_S, PASS_KB_S, READ_RANK_S = 60e-6, 15e-6, 40e-6, 2e-6, 8e-6
CLOSED_S = 0.5e-3
LEAVE_S = 0.01
HEARTBEAT_S = 1.5
SPARE = 0.06
"""Share of nodes without ranks, for those that are killed."""
READY_S, RETRY = 40.0, 1.1
LETTER_BYTES, MEMBER_BYTES, SUSPICION_BYTES, FRAME_BYTES = 150, 110, 65, 90


@dataclass
class Counted:
    packets: int = 0
    received: int = 0
    bytes: int = 0


@dataclass
class Simulated:
    overlay: Overlay
    node: membership.Node
    free_s: float = 0.0
    wake_s: float | None = None
    timers: dict[str, int] = field(default_factory=dict)
    alive: bool = True
    counted: Counted = field(default_factory=Counted)
    installed_s: float = -1.0


class World:
    """A job of some launchers that are connected and have a view."""

    def __init__(self, size: int) -> None:
        self.size, self.now_s, self.events, self.installs = size, 0.0, 0, 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._bodies: dict[str, tuple[membership.Message, int]] = {}
        self._keys: dict[int, str] = {}
        everyone = {
            node: Member(node, f"{node:012x}", 0, f"10.0.{node >> 8}.{node & 255}", 29400) for node in range(size)
        }
        ring = Ring(everyone)
        desired = {node: set(ring.desired(node)) for node in everyone}
        for node, others in list(desired.items()):
            for other in list(others):
                desired[other].add(node)
        statuses = tuple(self._status(node) for node in everyone)
        first = membership.View(generation=0, nodes=(0,) * size)
        self._policy = membership.Policy(world_size=size - max(1, round(SPARE * size)))
        view = membership.next_view(first, statuses, policy=self._policy)
        assert isinstance(view, membership.View)
        called, up = (0,) * size, frozenset(everyone)
        self.launchers = []
        for node in everyone:
            overlay = Overlay(node, ChainMap({}, everyone), heartbeat_s=HEARTBEAT_S, ring=ring.copy())
            for other in sorted(desired[node]):
                overlay.router.link(other, 0.0)
            state = membership.Node(node, size, 0, view, up - {node}, called)
            self.launchers.append(Simulated(overlay, state))
        self.links = sum(map(len, desired.values())) / size

    @staticmethod
    def _status(node: int) -> membership.Status:
        slot = membership.Slot(node, 0)
        process = membership.RankStatus(slot=slot, rank=node, host=f"10.0.{node >> 8}.{node & 255}", port=41000)
        return membership.Status(node=node, incarnation=0, ranks=(process,))

    def run(self, until_s: float, *, done: Callable[[], bool]) -> None:
        """Until done, or the virtual time is over."""
        while self._queue and not done():
            self.now_s, _, what = heapq.heappop(self._queue)
            if self.now_s > until_s:
                return
            self.events += 1
            what()

    def at(self, time_s: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time_s, next(self._order), what))

    def kill(self, victims: frozenset[int]) -> None:
        """All at once; messages already sent arrive."""
        for victim in victims:
            self.launchers[victim].alive = False
        for victim in victims:
            for other in sorted(self.launchers[victim].overlay.linked):
                if other not in victims:
                    self.at(self.now_s + CLOSED_S, functools.partial(self._closed, other, victim))

    def _closed(self, node: int, victim: int) -> None:
        launcher = self.launchers[node]
        self._busy(launcher, lambda: launcher.overlay.unlink(victim, self.now_s))

    def _busy(self, launcher: Simulated, what: Callable[[], None], cost_s: float = ITEM_S) -> None:
        if not launcher.alive:
            return
        start_s = max(self.now_s, launcher.free_s)
        launcher.free_s = start_s + cost_s

        def do() -> None:
            if launcher.alive:
                what()
                self._effects(launcher)

        self.at(launcher.free_s, do)

    def _effects(self, launcher: Simulated) -> None:
        for effect in launcher.overlay.effects(self.now_s):
            if isinstance(effect, Write):
                self._write(launcher, effect.node, effect.packet)
            elif isinstance(effect, Deliver):
                body, size = self._bodies[effect.body]
                launcher.free_s = max(launcher.free_s, self.now_s) + size / 1024 * READ_KB_S
                self._take(launcher, effect.origin, body)
            elif isinstance(effect, Down):
                self._act(launcher, *membership.lost(launcher.node, effect.node))
            elif isinstance(effect, Up):
                self._act(launcher, *membership.found(launcher.node, effect.member.node, 0))
        due_s = launcher.overlay.due_s
        if due_s is not None and (launcher.wake_s is None or due_s < launcher.wake_s):
            launcher.wake_s = due_s
            self.at(due_s, lambda: self._wake(launcher))

    def _wake(self, launcher: Simulated) -> None:
        launcher.wake_s = None
        self._busy(launcher, lambda: None, 0.0)

    def _write(self, launcher: Simulated, to: int, packet: Packet) -> None:
        passed = sum(LETTER_BYTES + 8 * len(letter.skip) + self._bodies[letter.body][1] for letter in packet.letters)
        reported = MEMBER_BYTES * len(packet.members) + SUSPICION_BYTES * len(packet.suspicions)
        size = FRAME_BYTES + passed + reported
        launcher.counted.packets += 1
        launcher.counted.bytes += size
        receiver = self.launchers[to]
        items = len(packet.members) + len(packet.suspicions) + len(packet.letters)
        launcher.free_s = max(launcher.free_s, self.now_s) + PACKET_S / 2 + passed / 1024 * PASS_KB_S
        cost_s = PACKET_S / 2 + ITEM_S * items + passed / 1024 * PASS_KB_S

        def arrive() -> None:
            if receiver.alive:
                receiver.counted.received += 1
                sender = launcher.overlay.me
                self._busy(receiver, lambda: receiver.overlay.hear(sender, packet, self.now_s), cost_s)

        self.at(max(launcher.free_s, self.now_s) + HOP_S + size * BYTE_S, arrive)

    def _take(self, launcher: Simulated, sender: int, message: membership.Message) -> None:
        self._act(launcher, *membership.message(launcher.node, sender, message, decide=self._decide))

    def _decide(self, committed: membership.View, statuses: tuple[membership.Status, ...]) -> membership.View | str:
        return membership.next_view(committed, statuses, policy=self._policy)

    def _act(self, launcher: Simulated, node: membership.Node, actions: list[membership.Action]) -> None:
        launcher.node = node
        while actions:
            action = actions.pop(0)
            if isinstance(action, membership.Send):
                same = [action]
                while actions and isinstance(actions[0], membership.Send) and actions[0].message is action.message:
                    same.append(actions.pop(0))  # type: ignore[arg-type]
                self._send(launcher, [send.to for send in same], action.message)
            elif isinstance(action, membership.Leave):
                self.at(self.now_s + LEAVE_S, lambda: self._left(launcher))
            elif isinstance(action, membership.Install):
                launcher.free_s = max(launcher.free_s, self.now_s) + READ_RANK_S * len(action.view.ranks)
                launcher.installed_s = launcher.free_s
                self.installs += 1
            elif isinstance(action, membership.SetTimer) and action.name in (membership.PROPOSE, membership.GATHER):
                self._set(launcher, action)

    def _left(self, launcher: Simulated) -> None:
        status = self._status(launcher.overlay.me)
        self._busy(launcher, lambda: self._act(launcher, *membership.ready(launcher.node, status)))

    def _set(self, launcher: Simulated, action: membership.SetTimer) -> None:
        number = launcher.timers[action.name] = launcher.timers.get(action.name, 0) + 1
        delay_s = READY_S * action.turn * (RETRY if action.name == membership.PROPOSE else 1.0)

        def fire() -> None:
            if launcher.timers[action.name] == number:
                self._act(launcher, *membership.timer(launcher.node, action.name, decide=self._decide))

        self.at(self.now_s + delay_s, lambda: self._busy(launcher, fire))

    def _send(self, launcher: Simulated, to: list[int], message: membership.Message) -> None:
        me = launcher.overlay.me
        if me in to:
            self.at(self.now_s, lambda: self._busy(launcher, lambda: self._take(launcher, me, message)))
        others = [node for node in to if node != me]
        if not others:
            return
        key = f"{id(message)}"
        self._bodies[key] = (message, len(LINK.encode(message)))
        if len(others) == 1:
            launcher.overlay.send(others[0], key, self.now_s)
        else:
            chosen = {*others, me}
            left = tuple(node for node in launcher.overlay.roster.ring.nodes() if node not in chosen)
            launcher.overlay.spread(key, self.now_s, skip=left)
