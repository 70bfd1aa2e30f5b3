"""
The launchers in reach on a ring, and who is connected to whom: the nearest on both sides, and one at each half of what
is left of the way round (Chord, Stoica et al. 2001), so that any other is a logarithm of hops away.

The order on the ring has nothing to do with the numbers of nodes: neighbours are seldom in one rack, and the loss of a
launcher changes the connections of those alone that had one to it.
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
    """Where a launcher stands on the ring."""
    return int.from_bytes(hashlib.sha256(str(node).encode()).digest()[:8], "big")


def way(start: int, end: int) -> int:
    """How far it is clockwise from one launcher to another."""
    return (place(end) - place(start)) % ROUND


def distance(one: int, other: int) -> int:
    """How far it is the shorter way."""
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
        """Another one of the same launchers."""
        made = Ring()
        made._places = [*self._places]
        return made

    def add(self, node: int) -> None:
        """Nothing where it is there."""
        if node not in self:
            insort(self._places, (place(node), node))

    def remove(self, node: int) -> None:
        """Nothing where it is not there."""
        if node in self:
            del self._places[self._index(node)]

    def nodes(self) -> list[int]:
        """All, in their order."""
        return [node for _, node in self._places]

    def beside(self, node: int, each_side: int = NEIGHBOURS) -> frozenset[int]:
        """The nearest on both sides of a launcher, whether it is on the ring itself or not."""
        size = len(self._places)
        index = self._index(node)
        after = index + (node in self)
        if size - (node in self) <= 2 * each_side:
            return frozenset(self.nodes()) - {node}
        chosen = [*range(after, after + each_side), *range(index - each_side, index)]
        return frozenset(self._places[step % size][1] for step in chosen)

    def fingers(self, node: int) -> frozenset[int]:
        """The next after half of the ring, after a quarter and so on, as far as they are not beside it."""
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

    def wanted(self, node: int) -> frozenset[int]:
        """Whom a launcher is to be connected to. Others want it, too."""
        return self.beside(node) | self.fingers(node)

    def between(self, first: int, end: int) -> Sequence[int]:
        """Those of the arc that begins with one launcher and ends before another; the whole ring where both are one."""
        begin, stop = self._index(first), self._index(end)
        if begin < stop or (begin == stop and place(first) < place(end)):
            return [node for _, node in self._places[begin:stop]]
        return [node for _, node in (*self._places[begin:], *self._places[:stop])]

    def _index(self, node: int) -> int:
        return bisect_left(self._places, (place(node), node))
