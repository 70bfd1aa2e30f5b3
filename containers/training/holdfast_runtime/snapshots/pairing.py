"""
Who keeps whose shard: a pure function of the node that each rank is on, so that all ranks agree without asking.

A buddy is on another node, because a node is what fails as a whole. Where nodes have the same number of ranks they are
paired, and each keeps the other's: among n nodes only n / 2 pairs of failures then lose a shard, half as many as in a
ring (the group placement of Gemini, SOSP 2023, section 4).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Buddies:
    """Of each rank, by rank."""

    keepers: tuple[int, ...]
    """Who keeps its shard; -1 when there is nobody else."""
    apart: bool
    """Whether every keeper is on another node than the rank."""

    def wards(self, rank: int) -> tuple[int, ...]:
        """The ranks whose shards a rank keeps."""
        return tuple(other for other, keeper in enumerate(self.keepers) if keeper == rank)


def buddies(nodes: Sequence[int]) -> Buddies:
    """
    The keeper of each rank's shard.

    Each rank keeps one shard where that is possible: where no node has more than half of the ranks. Otherwise some
    keep more. With a single node the keeper is another process of it, which covers the loss of a process only.

    Args:
        nodes: the node of each rank, by rank; any numbers.
    """
    places = defaultdict(list)
    for rank, node in enumerate(nodes):
        places[node].append(rank)
    groups = [places[node] for node in sorted(places)]
    if len(groups) < 2:
        size = len(nodes)
        return Buddies(tuple((rank + 1) % size if size > 1 else -1 for rank in range(size)), apart=False)
    if len({len(group) for group in groups}) == 1:
        return Buddies(_paired(groups), apart=True)
    return Buddies(_shifted(groups), apart=True)


def _paired(groups: list[list[int]]) -> tuple[int, ...]:
    """Nodes of one size: two by two; three in a circle when their number is odd."""
    keepers = [-1] * sum(map(len, groups))
    teams = [groups[first : first + 2] for first in range(0, len(groups), 2)]
    if len(teams[-1]) == 1:
        teams[-2:] = [teams[-2] + teams[-1]]
    for team in teams:
        for group, other in zip(team, team[1:] + team[:1], strict=True):
            for rank, keeper in zip(group, other, strict=True):
                keepers[rank] = keeper
    return tuple(keepers)


def _shifted(groups: list[list[int]]) -> tuple[int, ...]:
    """Nodes of different sizes: each rank's keeper is as far away as the largest node is large."""
    order = [rank for group in groups for rank in group]
    keepers = [-1] * len(order)
    largest = max(groups, key=len)
    if 2 * len(largest) <= len(order):
        for position, rank in enumerate(order):
            keepers[rank] = order[(position + len(largest)) % len(order)]
        return tuple(keepers)
    outside = [rank for rank in order if rank not in set(largest)]
    for position, rank in enumerate(largest):
        keepers[rank] = outside[position % len(outside)]
    for position, rank in enumerate(outside):
        keepers[rank] = largest[position]
    return tuple(keepers)
