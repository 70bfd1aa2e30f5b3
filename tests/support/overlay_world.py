"""Launchers of a large job in a small world: a ring of connections, and any order in which things arrive."""

import itertools
import random
from collections import deque
from collections.abc import Callable

from holdfast_runtime import membership as m
from holdfast_runtime.overlay import Deliver, Down, Member, Overlay, Packet, Ring, Up, Write

Decide = Callable[[m.View, tuple[m.Status, ...]], m.View | str]


def decide(committed: m.View, statuses: tuple[m.Status, ...]) -> m.View:
    """A view that shows who was heard."""
    nodes = [-1] * len(committed.nodes)
    for status in statuses:
        nodes[status.node] = status.incarnation
    return m.View(generation=committed.generation + 1, nodes=tuple(nodes), resume_step=len(statuses))


class World:
    """
    Launchers with connections to their neighbours alone, so that nearly all that is said is passed on by others.

    Args:
        each_side: Neighbours with a connection, on each side of the ring.
        pick: Which of the connections with something on its way delivers next.
    """

    def __init__(self, size: int, *, each_side: int = 1, pick: Callable[[int], int] = lambda count: 0) -> None:
        self.each_side, self._pick, self.now_s = each_side, pick, 0.0
        self.ring = Ring(range(size))
        members = {node: Member(node, f"{node:02x}", 0, "host", 1 + node) for node in range(size)}
        self.overlays = {
            node: Overlay(node, dict(members), heartbeat_s=1.0, hold_s=0.0, ring=self.ring.copy()) for node in members
        }
        self.nodes = {node: m.start(me=node, size=size, up=frozenset(members)) for node in members}
        self.flying: dict[tuple[int, int], deque[Packet]] = {}
        self.read: dict[int, list[tuple[int, str]]] = {node: [] for node in members}
        self.down: dict[int, list[int]] = {node: [] for node in members}
        self.views: set[m.View] = set()
        self.delivered = 0
        self._bodies: dict[str, m.Message] = {}
        self._numbers = itertools.count()
        self.connect(news=False)

    def connect(self, *, news: bool = True) -> None:
        """Make the connections that are missing, as a driver does."""
        for node, overlay in self.overlays.items():
            for other in self.ring.beside(node, self.each_side) - overlay.linked:
                for one, two in ((node, other), (other, node)):
                    self.flying.setdefault((one, two), deque())
                    if news:
                        self.overlays[one].link(self.overlays[two].roster.own, self.now_s)
                    else:
                        self.overlays[one].router.link(two, self.now_s)
        for node in [*self.overlays]:
            self.carry_out(node)

    def kill(self, victim: int) -> None:
        """What it had not sent is lost, and its neighbours see its connections closed."""
        neighbours = self.overlays.pop(victim).linked
        self.ring.remove(victim)
        self.flying = {ends: packets for ends, packets in self.flying.items() if victim not in ends}
        for node in sorted(neighbours & self.overlays.keys()):
            self.overlays[node].unlink(victim, self.now_s)
        self.connect()

    def step(self) -> bool:
        """Something arrives; False where nothing is on its way."""
        waiting = [ends for ends, packets in sorted(self.flying.items()) if packets]
        if not waiting:
            return False
        sender, receiver = waiting[self._pick(len(waiting))]
        self.overlays[receiver].hear(sender, self.flying[sender, receiver].popleft(), self.now_s)
        self.delivered += 1
        self.carry_out(receiver)
        return True

    def settle(self) -> None:
        """Until nothing is on its way, and nothing is waited for."""
        while self.step():
            pass
        for _ in range(3):  # deadlines of the roster, then those of the protocol
            self.now_s += 10.0
            for node in [*self.overlays]:
                self.act(node, *m.timer(self.nodes[node], m.MEET, decide=decide))
                self.carry_out(node)
            while self.step():
                pass

    def carry_out(self, node: int) -> None:
        overlay = self.overlays[node]
        while effects := overlay.effects(self.now_s):
            for effect in effects:
                if isinstance(effect, Write):
                    if (node, effect.node) in self.flying:
                        self.flying[node, effect.node].append(effect.packet)
                elif isinstance(effect, Deliver):
                    self.read[node].append((effect.origin, effect.body))
                    if effect.body in self._bodies:
                        self.act(
                            node, *m.message(self.nodes[node], effect.origin, self._bodies[effect.body], decide=decide)
                        )
                elif isinstance(effect, Down):
                    self.down[node].append(effect.node)
                    self.act(node, *m.lost(self.nodes[node], effect.node))
                elif isinstance(effect, Up):
                    self.act(node, *m.found(self.nodes[node], effect.member.node, 0))

    def say(self, node: int, body: str, *, to: int = -1, skip: tuple[int, ...] = ()) -> None:
        """A text, to one or to all."""
        if to >= 0:
            self.overlays[node].send(to, body, self.now_s)
        else:
            self.overlays[node].spread(body, self.now_s, skip=skip)
        self.carry_out(node)

    def act(self, node: int, state: m.Node, actions: list[m.Action]) -> None:
        """What the protocol wants, carried out as a launcher does."""
        self.nodes[node] = state
        for message, same in itertools.groupby(actions, key=lambda a: id(a.message) if isinstance(a, m.Send) else 0):
            group = [*same]
            sends = [action for action in group if isinstance(action, m.Send)]
            if message:
                self._send(node, [send.to for send in sends], sends[0].message)
            for action in group:
                if isinstance(action, m.Leave):
                    self.act(node, *m.ready(self.nodes[node], m.Status(node=node, incarnation=0)))
                elif isinstance(action, m.Install):
                    self.views.add(action.view)
                elif isinstance(action, m.SetTimer) and (action.name, action.turn) == (m.GATHER, 0):
                    self.act(node, *m.timer(self.nodes[node], m.GATHER, decide=decide))

    def propose(self, node: int) -> None:
        """Its turn has come."""
        self.act(node, *m.timer(self.nodes[node], m.PROPOSE, decide=decide))
        self.carry_out(node)

    def _send(self, node: int, to: list[int], message: m.Message) -> None:
        body = f"message {next(self._numbers)}"
        self._bodies[body] = message
        others = {*to} - {node}
        if node in to:
            self.act(node, *m.message(self.nodes[node], node, message, decide=decide))
        if len(others) == 1:
            self.overlays[node].send(others.pop(), body, self.now_s)
        elif others:
            skip = tuple(sorted({*self.ring.nodes()} - others - {node}))
            self.overlays[node].spread(body, self.now_s, skip=skip)


def orders() -> dict[str, Callable[[], Callable[[int], int]]]:
    """Orders in which connections deliver."""
    seeded = {f"at random {seed}": lambda seed=seed: random.Random(seed).randrange for seed in range(4)}
    return {"the first": lambda: lambda count: 0, "the last": lambda: lambda count: count - 1, **seeded}
