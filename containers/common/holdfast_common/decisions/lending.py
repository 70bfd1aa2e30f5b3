"""
Lending of nodes to elastic jobs, taken back for others. Pure.

Returns only the size that each elastic job should have; the scheduler starts jobs by priority.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

_COMMENT = re.compile(r"\belastic=(\d{1,5})(?::(\d{1,5})|((?:,\d{1,5})*))")


@dataclass(frozen=True)
class Waiting:
    job: str
    nodes: int
    priority: int


@dataclass(frozen=True)
class Elastic:
    job: str
    nodes: int
    sizes: "tuple[int, ...]"
    priority: int = 0


def elastic_nodes(comment: str) -> "tuple[int, ...]":
    """
    Numbers of nodes that a job with the comment ``elastic=2:5`` or ``elastic=2,3,5`` may have; empty for another job.

    Launchers need a majority of the largest size, with or without ranks: a smaller size keeps that many nodes.
    """
    found = _COMMENT.search(comment)
    if not found:
        return ()
    first = int(found[1])
    sizes = range(first, int(found[2]) + 1) if found[2] else [first, *map(int, (found[3] or "").split(",")[1:])]
    quorum = max(sizes, default=0) // 2 + 1
    return tuple(sorted({max(size, quorum) for size in sizes}))


def shares(*, free: int, waiting: Iterable[Waiting], elastic: Iterable[Elastic]) -> "dict[str, int]":
    """
    Nodes that each elastic job should have; ``free`` includes nodes on their way from jobs.

    The first pending job is served completely or not at all, and none before it. The rest is lent, by priority, as far
    as sizes allow.
    """
    jobs = sorted(elastic, key=lambda one: (-one.priority, one.job))
    have = {one.job: one.nodes for one in jobs}
    for pending in sorted(waiting, key=lambda one: (-one.priority, one.job)):
        taken = _taken(pending.nodes - free, [one for one in reversed(jobs) if one.priority < pending.priority], have)
        if taken is None:
            break  # it waits for others, and what is free may be lent meanwhile: it can be taken back
        free += sum(have[name] - nodes for name, nodes in taken.items()) - pending.nodes
        have.update(taken)
    for one in jobs:
        size = max((size for size in one.sizes if have[one.job] <= size <= have[one.job] + free), default=0)
        if size > have[one.job]:
            free -= size - have[one.job]
            have[one.job] = size
    return have


def _taken(short: int, jobs: Sequence[Elastic], have: "dict[str, int]") -> Optional[dict[str, int]]:
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
