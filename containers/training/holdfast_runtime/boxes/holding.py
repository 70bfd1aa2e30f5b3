"""Boxes of every rank, their other holders, and losses with some ranks."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast_runtime.boxes.box import Box, remainder

Holding = Mapping[int, frozenset[Box]]
"""
The boxes of each rank. Those of one rank do not overlap.

One box for a parameter is enough: its moments in the optimizer have the same layout.
"""


def twins(holding: Holding) -> dict[int, tuple[int, ...]]:
    """
    Of each rank, the others that have every element that it has, in ascending order.

    Along the replicated dimension of a mesh it is so both ways. Not everywhere: whoever has whole tensors is a twin of
    those that have parts of them.
    """
    classes = alike(holding)
    by_tensor = {ranks: _by_tensor(holding[ranks[0]]) for ranks in classes}
    found = {}
    for ranks in classes:
        mine = holding[ranks[0]]
        over = {
            rank
            for other in classes
            if other is not ranks and _within(holding[other[0]], by_tensor[other], mine)
            for rank in other
        }
        for rank in ranks:
            found[rank] = tuple(sorted({*ranks, *over} - {rank}))
    return dict(sorted(found.items()))


def alike(holding: Holding) -> tuple[tuple[int, ...], ...]:
    found: defaultdict[frozenset[Box], list[int]] = defaultdict(list)
    for rank in sorted(holding):
        found[holding[rank]].append(rank)
    return tuple(tuple(ranks) for ranks in found.values())


def strata(holding: Holding) -> dict[tuple[int, ...], tuple[Box, ...]]:
    """
    The boxes by the ranks that have them: what lies in one stratum has the same holders.

    One digest for each stratum compares all of the state, also where ranks have some boxes in common and others not, as
    under tensor parallelism: see ``dissenters``. Boxes are cut where ranks have different parts of a tensor, so each
    element is in exactly one stratum.
    """
    holders: defaultdict[Box, set[int]] = defaultdict(set)
    for rank, boxes in holding.items():
        for box in boxes:
            if box.elements:
                holders[box].add(rank)
    tensors: defaultdict[str, dict[Box, frozenset[int]]] = defaultdict(dict)
    for box in sorted(holders):
        tensors[box.tensor][replace(box, tensor="")] = frozenset(holders[box])
    alike_cut: dict[Hashable, list[tuple[Box, frozenset[int]]]] = {}
    found: defaultdict[tuple[int, ...], list[Box]] = defaultdict(list)
    for tensor, parts in tensors.items():
        key = tuple(parts.items())
        if key not in alike_cut:  # most tensors of a model are cut as others are
            alike_cut[key] = _apart(key)
        for box, ranks in alike_cut[key]:
            found[tuple(sorted(ranks))].append(replace(box, tensor=tensor))
    return {ranks: tuple(sorted(found[ranks])) for ranks in sorted(found)}


def dissenters(digests: Mapping[int, Mapping[tuple[int, ...], str]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """
    Ranks that differ from the majority, by stratum; only strata whose holders differ.

    Args:
        digests: of each rank, by the holders of the stratum (a key of ``strata``).

    Returns:
        The ranks in the minority; all holders where no state has more than half of them: then nobody knows which one is
        right.
    """
    found: defaultdict[tuple[int, ...], dict[int, str]] = defaultdict(dict)
    for rank, given in digests.items():
        for holders, digest in given.items():
            found[holders][rank] = digest
    wrong = {}
    for holders, reports in sorted(found.items()):
        best = max(reports.values(), key=lambda digest: sum(other == digest for other in reports.values()))
        others = tuple(sorted(rank for rank, digest in reports.items() if digest != best))
        if others:
            wrong[holders] = others if 2 * len(others) < len(reports) else tuple(sorted(reports))
    return wrong


def covers(held: Collection[Box], needed: Iterable[Box]) -> bool:
    return _within(frozenset(held), _by_tensor(held), needed)


def missing(have: Holding, need: Holding) -> dict[int, tuple[Box, ...]]:
    there = frozenset(box for boxes in have.values() for box in boxes)
    by_tensor = _by_tensor(there)
    asked = {box for boxes in need.values() for box in boxes} - there
    gone = {box: remainder(box, by_tensor.get(box.tensor, ())) for box in asked}
    found = {rank: tuple(sorted(piece for box in need[rank] for piece in gone.get(box, ()))) for rank in sorted(need)}
    return {rank: pieces for rank, pieces in found.items() if pieces}


def _within(held: frozenset[Box], by_tensor: Mapping[str, Sequence[Box]], needed: Iterable[Box]) -> bool:
    return all(box in held or not remainder(box, by_tensor.get(box.tensor, ())) for box in needed)


def _apart(boxes: Iterable[tuple[Box, frozenset[int]]]) -> list[tuple[Box, frozenset[int]]]:
    waiting, found = list(boxes), list[tuple[Box, frozenset[int]]]()
    while waiting:
        box, ranks = waiting.pop()
        hit = next((item for item in found if item[0].overlap(box)), None)
        if hit is None:
            found.append((box, ranks))
            continue
        old, others = hit
        common = old.overlap(box)
        assert common is not None
        found.remove(hit)
        found.append((common, others | ranks))
        found += [(piece, others) for piece in old.without(common)]
        waiting += [(piece, ranks) for piece in box.without(common)]
    return found


def _by_tensor(boxes: Iterable[Box]) -> dict[str, list[Box]]:
    found: defaultdict[str, list[Box]] = defaultdict(list)
    for box in boxes:
        found[box.tensor].append(box)
    return found
