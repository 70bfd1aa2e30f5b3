"""
Who has how many nodes where jobs are elastic: what idles is lent to them, and taken back for others. Pure.

Whoever starts jobs starts them in the order of their priority; this only says which size each elastic job should have.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Waiting:
    """
    A job that cannot begin yet.

    Args:
        job: Its name.
        nodes: That it needs.
        priority: The higher, the earlier it begins.
    """

    job: str
    nodes: int
    priority: int


@dataclass(frozen=True)
class Elastic:
    """
    A job that runs and may have another size.

    Args:
        job: Its name.
        nodes: That it has, without those that it was told to leave.
        sizes: That it may have.
        priority: It gives way to higher ones.
    """

    job: str
    nodes: int
    sizes: "tuple[int, ...]"
    priority: int = 0


def shares(*, free: int, waiting: Iterable[Waiting], elastic: Iterable[Elastic]) -> "dict[str, int]":
    """
    Nodes that each elastic job should have.

    The first of those that wait is served as a whole or not at all, and none before it: nodes are not taken for a job
    that they would not be enough for. What is left is lent, in the order of priority, as far as sizes allow.

    Args:
        free: Nodes that nobody has, and those on their way from jobs that were told to leave.
    """
    jobs = sorted(elastic, key=lambda one: (-one.priority, one.job))
    have = {one.job: one.nodes for one in jobs}
    for wanted in sorted(waiting, key=lambda one: (-one.priority, one.job)):
        taken = _taken(wanted.nodes - free, [one for one in reversed(jobs) if one.priority < wanted.priority], have)
        if taken is None:
            break  # it waits for others, and what is free may be lent meanwhile: it can be taken back
        free += sum(have[name] - nodes for name, nodes in taken.items()) - wanted.nodes
        have.update(taken)
    for one in jobs:
        size = max((size for size in one.sizes if have[one.job] <= size <= have[one.job] + free), default=0)
        if size > have[one.job]:
            free -= size - have[one.job]
            have[one.job] = size
    return have


def _taken(short: int, jobs: Sequence[Elastic], have: "dict[str, int]") -> Optional[dict[str, int]]:
    """The sizes of those that give nodes, in this order; None where they have not so many to give."""
    taken: dict[str, int] = {}
    for one in jobs:
        if short <= 0:
            break
        smaller = [size for size in one.sizes if size < have[one.job]]
        if smaller:
            enough = [size for size in smaller if have[one.job] - size >= short]
            taken[one.job] = max(enough) if enough else min(smaller)
            short -= have[one.job] - taken[one.job]
    return None if short > 0 else taken
