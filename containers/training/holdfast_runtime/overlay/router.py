"""
Routing of letters: along a tree to all, and from one launcher to another.

A letter to all goes to each connection clockwise, which covers the launchers up to the next one. A letter to one goes
to the nearest connection. Letters sent lately are sent another way when a connection ends; receivers drop duplicates.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from holdfast_runtime.overlay.messages import Letter
from holdfast_runtime.overlay.ring import Ring, distance, way

FEW = 4
"""So many launchers without a connection are each sent their own letter."""
KEPT = 2.0
"""Heartbeat deadlines after which a letter that went to a neighbour is taken for passed on."""
SEEN_S = 60.0
MOST_SEEN = 1 << 16


@dataclass
class Router:
    me: int
    uid: str
    ring: Callable[[], Ring]
    put: Callable[[int, Letter, float], None]
    heartbeat_s: float
    linked: set[int] = field(default_factory=set)
    number: int = 0
    kept: dict[int, deque[tuple[float, Letter]]] = field(default_factory=dict)
    """By neighbour, what went to it lately."""
    detours: set[tuple[str, int, int]] = field(default_factory=set)
    """Letters that went to a connection farther away since connections last changed: uid, number and receiver."""
    stuck: list[Letter] = field(default_factory=list)
    """No connection leads nearer to whom they are for."""
    seen: dict[tuple[str, int], float] = field(default_factory=dict)

    def write(self, body: str, *, to: int = -1, skip: tuple[int, ...] = (), now_s: float) -> None:
        self.number += 1
        letter = Letter(self.me, self.uid, self.number, body, to=to, skip=skip)
        self.seen[self.uid, self.number] = now_s
        if to >= 0:
            self.route(letter, now_s)
        else:
            self._cover(replace(letter, first=self.me, end=self.me), now_s)

    def take(self, letter: Letter, now_s: float) -> bool:
        if letter.to >= 0 and letter.to != self.me:
            self.route(letter, now_s)
            return False
        if letter.to < 0:
            self._cover(letter, now_s)
        key = (letter.uid, letter.number)
        new = key not in self.seen and self.me not in letter.skip
        self.seen[key] = now_s
        if len(self.seen) > MOST_SEEN:  # what is old cannot come again
            self.seen = {key: seen_s for key, seen_s in self.seen.items() if now_s - seen_s <= SEEN_S}
        return new

    def link(self, node: int, now_s: float) -> None:
        self.linked.add(node)
        self.kept.setdefault(node, deque())
        self.retry(now_s)

    def unlink(self, node: int, *, lost: bool, now_s: float) -> None:
        self.linked.discard(node)
        kept = self.kept.pop(node, ())
        self.detours.clear()
        if not lost:
            return
        for sent_s, letter in kept:
            if now_s - sent_s > KEPT * self.heartbeat_s:
                continue
            self.again(node, letter, now_s)

    def again(self, node: int, letter: Letter, now_s: float) -> None:
        if letter.to < 0:
            self._cover(letter, now_s)
        elif letter.to != node or node in self.ring():
            self.route(letter, now_s)

    def retry(self, now_s: float) -> None:
        stuck, self.stuck = self.stuck, []
        self.detours.clear()
        for letter in stuck:
            self.route(letter, now_s)

    def route(self, letter: Letter, now_s: float) -> None:
        if letter.to in self.linked:
            self._send(letter.to, letter, now_s)
        elif letter.to in self.ring():
            nearest = min(self.linked, key=lambda node: distance(node, letter.to), default=self.me)
            detour = (letter.uid, letter.number, letter.to)
            if distance(nearest, letter.to) < distance(self.me, letter.to):
                self._send(nearest, letter, now_s)
            elif nearest != self.me and detour not in self.detours:  # its own connection is cut, others may have one
                self.detours.add(detour)
                self._send(nearest, letter, now_s)
            else:
                self.stuck.append(letter)

    def _cover(self, letter: Letter, now_s: float) -> None:
        begin, length = way(self.me, letter.first), way(letter.first, letter.end)
        # Counted from where the arc begins; this launcher may stand before it or in it.
        heads = sorted(self._in_arc(self.linked, letter, length), key=lambda node: way(letter.first, node))
        rest = [
            node for node in self.ring().between(letter.first, heads[0] if heads else letter.end) if node != self.me
        ]
        if heads and heads[0] == letter.first:
            rest = []
        if rest:
            self._cover_rest(replace(letter, end=heads[0] if heads else letter.end), rest, begin, now_s)
        for head, following in itertools.pairwise([*heads, letter.end]):
            self._send(head, replace(letter, first=head, end=following), now_s)

    def _cover_rest(self, letter: Letter, rest: list[int], begin: int, now_s: float) -> None:
        before = [node for node in self.linked if 0 < way(self.me, node) < begin]
        if len(rest) > FEW and before:
            nearest = max(before, key=lambda node: way(self.me, node))
            self._send(nearest, replace(letter, first=rest[0]), now_s)
            return
        for node in rest:
            if node not in letter.skip:
                self.route(replace(letter, to=node, first=-1, end=-1, skip=()), now_s)

    def _in_arc(self, nodes: Iterable[int], letter: Letter, length: int) -> Iterable[int]:
        whole = letter.first == letter.end
        return (node for node in nodes if whole or way(letter.first, node) < length)

    def _send(self, node: int, letter: Letter, now_s: float) -> None:
        kept = self.kept.setdefault(node, deque())
        while kept and now_s - kept[0][0] > KEPT * self.heartbeat_s:
            kept.popleft()
        kept.append((now_s, letter))
        self.put(node, letter, now_s)
