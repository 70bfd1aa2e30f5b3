"""
Parts of the state by process, and complete sets of parts of other sizes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast_runtime.membership.view import PARTS, RankStatus, part_number


@dataclass(frozen=True)
class Recut:
    """Parts of another size, all of one step."""

    step: int
    cut: int
    """Ranks that the state is divided among."""


def uses(item: RankStatus, rank: int, step: int, *, cut: int = 0) -> bool:
    """
    Return True if the state that a process trains with is that of a rank, or will be after an update that needs nobody.

    Args:
        cut: ranks that the state is divided among in an elastic sharded job. Default: no such job
    """
    there = item.committed_step == step or (item.prepared and item.committed_step + 1 == step)
    if item.state != "valid" or not there:
        return False
    if item.part >= 0:
        size, own = divmod(item.part, PARTS)
        return size == cut and (own == rank or rank in (item.twins or ()))
    return item.rank >= 0 and (item.rank == rank or item.twins is None or rank in item.twins)


def holders(items: Sequence[RankStatus], rank: int, step: int, *, cut: int) -> tuple[int, ...]:
    live = [place for place, item in enumerate(items) if uses(item, rank, step, cut=cut)]
    kept = [place for place, item in enumerate(items) if (part_number(rank, cut), step) in item.snapshots]
    return tuple(dict.fromkeys((*live, *kept)))


def recuts(items: Sequence[RankStatus], *, steps: Iterable[int], size: int) -> Recut | None:
    """The newest of these steps of which all parts of some other size are there; None where there is none."""
    numbers = {item.part for item in items if item.part >= 0}
    numbers |= {number for item in items for number, _ in item.snapshots if number >= PARTS}
    found = [
        Recut(step, cut)
        for cut in {number // PARTS for number in numbers} - {size}
        for step in steps
        if all(holders(items, rank, step, cut=cut) for rank in range(cut))
    ]
    return max(found, key=lambda each: (each.step, each.cut), default=None)
