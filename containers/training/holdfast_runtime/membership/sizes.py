"""
Number of ranks of the next view of an elastic job, and when a planned change is worth it. Pure.

A smaller size is taken at once if no launcher in reach could bring the missing processes; otherwise they are awaited.
"""

from collections.abc import Iterable, Sequence

from holdfast_runtime.membership.view import Asked

STEADY_S = 2.0
"""Processes have been there for so long before the job grows into them: capacity that comes and goes is no growth."""


def newest(asked: Iterable[Asked]) -> Asked:
    return max(asked, key=lambda each: (each.serial, each.ranks), default=Asked())


def next_size(
    sizes: Sequence[int], *, current: int, asked: int, there: int, places: int = 0, waited: bool = True
) -> int | str:
    """
    Ranks of the next view, or why there is none.

    Args:
        current: that the job has; 0 before it has begun.
        asked: ranks that somebody asked for; 0 for as many as there can be.
        places: processes that launchers in reach have or will have again. Default: no more than are there
        waited: whether those have had their time. Default: they have
    """
    allowed = [size for size in sizes if size <= asked] or [min(sizes)] if asked else list(sizes)
    possible = [size for size in allowed if size <= there]
    best, keep = max(possible, default=0), min(current, max(allowed))
    if best < keep <= places and not waited:
        return f"{there} processes are available, {keep} are required to keep the size; replacements are starting"
    if not best:
        return f"{there} processes are available, {min(allowed)} are required"
    return best


def change(sizes: Sequence[int], *, current: int, asked: int, there: int, steady_s: float) -> int:
    best = next_size(sizes, current=current, asked=asked, there=there)
    if isinstance(best, str) or best == current or (best > current and steady_s < STEADY_S):
        return 0
    return best
