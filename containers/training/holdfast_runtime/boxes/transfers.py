"""Transfers of boxes after a loss, or to another layout."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast_runtime.boxes.box import Box, remainder
from holdfast_runtime.boxes.holding import Holding, missing


class MissingBoxesError(ValueError):
    """Nobody has some of what is needed."""

    def __init__(self, boxes: Mapping[int, tuple[Box, ...]]) -> None:
        self.boxes = boxes
        """By the rank that needs them."""
        rank, first = next(iter(boxes.items()))
        count = sum(map(len, boxes.values()))
        super().__init__(
            f"no rank has {first[0].tensor} from {list(first[0].offsets)} to {list(first[0].ends)}, which rank {rank} "
            f"needs; {count} boxes are missing at ranks {', '.join(map(str, boxes))}"
        )


@dataclass(frozen=True, order=True)
class Transfer:
    """One box on its way."""

    box: Box
    source_rank: int
    target_rank: int


def transfers(
    have: Holding, need: Holding, *, nodes: Mapping[int, int] | None = None, strangers: bool = False
) -> tuple[Transfer, ...]:
    """
    The transfers after which each rank has all that it needs. What a rank has already is not sent to it, and nothing is
    sent twice.

    Where several have a box, one on the receiver's node gives it; among equals the one that has given the fewest
    elements so far, then the smallest rank. So all who know the same compute the same.

    Args:
        have: the boxes of those that can give. Of ranks with torn or lost state: nothing.
        need: the boxes of those that receive, in their own layout, which may be another than the givers'.
        nodes: the node of each rank. Default: all are as near
        strangers: whether the numbers of givers and receivers mean different processes, as of two worlds. Then what a
            receiver needs is sent also where a giver of its number has it. Default: a rank of both is one process

    Raises:
        MissingBoxesError: nobody has some of it.
    """
    if gone := missing(have, need):
        raise MissingBoxesError(gone)
    holders: defaultdict[str, defaultdict[Box, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank in sorted(have):
        for box in have[rank]:
            holders[box.tensor][box].append(rank)
    given: defaultdict[int, int] = defaultdict(int)
    found = []
    for target in sorted(need):
        own = frozenset() if strangers else have.get(target, frozenset())
        for needed in sorted(need[target] - own):
            left = remainder(needed, [box for box in own if box.tensor == needed.tensor]) if own else (needed,)
            there = holders[needed.tensor]
            for box in sorted(there, key=lambda box: (box != needed, box)):
                pieces = [piece for part in left if (piece := part.overlap(box))]
                if not pieces:
                    continue
                near = nodes or {}
                source = min(there[box], key=lambda rank: (near.get(rank) != near.get(target), given[rank], rank))
                given[source] += sum(piece.elements for piece in pieces)
                found += [Transfer(piece, source, target) for piece in pieces]
                left = tuple(rest for part in left for rest in part.without(box))
                if not left:
                    break
    return tuple(found)
