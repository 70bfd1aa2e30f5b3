"""
Ring of the launchers in reach. Each is connected to the nearest on both sides and to one at each half of the rest of
the ring (Chord, Stoica et al. 2001), so that any other is a logarithm of hops away.

The order is that of hashes: neighbours are seldom in one rack.
"""

import functools
import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

NEIGHBOURS = 4
"""Connected, and watched, on each side."""
ROUND = 1 << 64


@functools.cache
def place(node: int) -> int:
    return int.from_bytes(hashlib.sha256(str(node).encode()).digest()[:8], "big")


def way(start: int, end: int) -> int:
    return (place(end) - place(start)) % ROUND


def distance(one: int, other: int) -> int:
    clockwise = way(one, other)
    return min(clockwise, ROUND - clockwise)


class Ring:
    """Some launchers in their order."""

    def __init__(self, nodes: Iterable[int] = ()) -> None:
        self._places = sorted((place(node), node) for node in nodes)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, node: int) -> bool:
        index = self._index(node)
        return index < len(self._places) and self._places[index][1] == node

    def copy(self) -> "Ring":
        made = Ring()
        made._places = [*self._places]
        return made

    def add(self, node: int) -> None:
        if node not in self:
            insort(self._places, (place(node), node))

    def remove(self, node: int) -> None:
        if node in self:
            del self._places[self._index(node)]

    def nodes(self) -> list[int]:
        return [node for _, node in self._places]

    def beside(self, node: int, each_side: int = NEIGHBOURS) -> frozenset[int]:
        size = len(self._places)
        index = self._index(node)
        after = index + (node in self)
        if size - (node in self) <= 2 * each_side:
            return frozenset(self.nodes()) - {node}
        chosen = [*range(after, after + each_side), *range(index - each_side, index)]
        return frozenset(self._places[step % size][1] for step in chosen)

    def fingers(self, node: int) -> frozenset[int]:
        size, near, found = len(self._places), self.beside(node), set()
        if size <= 2 * NEIGHBOURS + 1:
            return frozenset()
        length = ROUND // 2
        while length:
            index = bisect_left(self._places, ((place(node) + length) % ROUND, -1)) % size
            other = self._places[index][1]
            if other in near or other == node:
                break
            found.add(other)
            length //= 2
        return frozenset(found)

    def desired(self, node: int) -> frozenset[int]:
        return self.beside(node) | self.fingers(node)

    def between(self, first: int, end: int) -> Sequence[int]:
        begin, stop = self._index(first), self._index(end)
        if begin < stop or (begin == stop and place(first) < place(end)):
            return [node for _, node in self._places[begin:stop]]
        return [node for _, node in (*self._places[begin:], *self._places[:stop])]

    def _index(self, node: int) -> int:
        return bisect_left(self._places, (place(node), node))
