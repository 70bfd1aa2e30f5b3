"""Ranks for which spares of a sharded job build models in advance."""

from collections.abc import Collection, Mapping, Sequence

from holdfast_runtime.membership.view import View


def to_build(view: View, *, node: int, built: Collection[int]) -> int:
    """
    The rank that the next spare of a node is built for; -1 for none.

    Ranks of the spare's own node come first, because one process is lost more often than a node. A node without ranks
    is there for a whole other one, and of several such nodes each for another. Rank 0 comes last in a node: it is the
    one whose script opens what is there once.
    """
    having = sorted({item.slot.node for item in view.ranks})
    if not having:
        return -1
    without = [number for number, name in enumerate(view.nodes) if name >= 0 and number not in having]
    home = node if node in having else having[without.index(node) % len(having) if node in without else 0]
    first = [rank for rank, item in enumerate(view.ranks) if item.slot.node == home]
    rest = [rank for rank, item in enumerate(view.ranks) if item.slot.node != home]
    return next((rank for rank in (*reversed(first), *reversed(rest)) if rank not in built), -1)


def missing(ranks: Sequence[int], *, built: Sequence[tuple[int, bool]]) -> tuple[int, ...]:
    """
    Those of some ranks that no spare is ready for.

    Args:
        built: Of each spare that has made its model, for which rank, and whether it can become another's.
    """
    exact = [rank for rank in ranks if any(rank == own for own, _ in built)]
    moving = sum(moves and own not in exact for own, moves in built)
    return tuple([rank for rank in ranks if rank not in exact][moving:])


def to_take(ranks: Sequence[int], *, spares: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    places = [node for node in sorted(spares) for _ in range(spares[node])]
    found: dict[int, tuple[int, ...]] = {}
    for rank, node in zip(ranks, places, strict=False):
        found[node] = (*found.get(node, ()), rank)
    return found
