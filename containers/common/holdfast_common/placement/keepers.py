"""
Placement of copies of the state: keepers of snapshots, and the losses that they allow.

Pure functions of the nodes and racks of all ranks, so that all ranks agree without messages. Copies are in two racks
where racks are known and none has more than half of the ranks, else on two nodes, else in two processes. Nodes of one
size are paired and each keeps the other's: among n only n / 2 pairs of failures lose a shard, half as many as in a ring
(the group placement of Gemini, SOSP 2023, section 4).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Optional, Union, get_args

Reach = Literal["nothing", "process", "node", "rack"]
"""What may be lost, any one of them; each includes those before it."""

REACHES: tuple[Reach, ...] = get_args(Reach)

BLOCKS = 4
"""Of a shard's size that a rank has room for: two of its own, and two of the rank that it keeps."""


@dataclass(frozen=True)
class Spot:
    """Location of a rank."""

    node: int
    """Of the same number: fails together."""
    rack: str = ""
    """Of the node, whatever else fails together: a rack, a power feed, a switch. Default: not known"""


@dataclass(frozen=True)
class Keepers:
    of: tuple[int, ...]
    """Rank that keeps its snapshots; -1 if twins are far enough away, or without another rank."""
    apart: Reach
    """What no rank and its keeper have in common: another process, another node, another rack."""

    def wards(self, rank: int) -> tuple[int, ...]:
        return tuple(other for other, keeper in enumerate(self.of) if keeper == rank)


@dataclass(frozen=True)
class Survival:
    """Losses that need no checkpoint."""

    reach: Reach
    short: tuple[int, ...] = ()
    """Ranks whose state is in one place of the next larger kind only."""

    def __str__(self) -> str:
        whose = f"has the state of {_named(self.short)}"
        if self.reach == "nothing":
            return f"no process may be lost without going back to a checkpoint: no other one {whose}"
        if self.reach == "process":
            return f"any one process may be lost, and no whole node: no other node {whose}"
        if self.reach == "node" and self.short:
            return f"any one node may be lost, and no whole rack: no other rack {whose}"
        return f"any one {self.reach} may be lost"

    def refusal(self, survive: Reach) -> str:
        """Reason to refuse a job that asks to survive the loss of any one of a kind; empty for none."""
        if REACHES.index(self.reach) >= REACHES.index(survive):
            return ""
        return (
            f"survive is {survive!r}, but {self}; give the job snapshots (snapshot_every) or replicas, and more than "
            f"one {survive}, or set survive to {self.reach!r}"
        )


def keepers(spots: Sequence[Spot], *, alike: Iterable[Sequence[int]] = ()) -> Keepers:
    """
    Choose the keeper of each rank's snapshots.

    Each rank keeps those of one other where that is possible: where no node has more than half of the ranks. Otherwise
    some keep more. On a single node the processes are paired, which covers the loss of a process only.

    Args:
        alike: ranks that have the same state; those that are apart already need no keeper. Default: no two are alike
    """
    ranks = range(len(spots))
    reach: Reach = "rack" if _has_racks(spots) and 2 * max(map(len, _groups(spots, "rack"))) <= len(spots) else "node"
    groups = _groups(spots, reach)
    if len(groups) == 1:
        reach, groups = "process", _groups(spots, "process")
    if len(groups) == 1:
        return Keepers((-1,), "nothing")
    chosen = _paired(groups) if len({len(group) for group in groups}) == 1 else _shifted(groups)
    far = {rank for same in alike if len({_place(spots, other, reach) for other in same}) > 1 for rank in same}
    return Keepers(tuple(-1 if rank in far else chosen[rank] for rank in ranks), reach)


def survival(spots: Sequence[Spot], *, alike: Iterable[Sequence[int]] = (), kept: Optional[Keepers] = None) -> Survival:
    """
    Losses that the copies allow.

    Args:
        alike: ranks that have the same state. Ranks in none of them have no twin.
        kept: who keeps snapshots. Default: nobody
    """
    holders = [tuple(ranks) for ranks in alike]
    known = {rank for ranks in holders for rank in ranks}
    holders += [(rank,) for rank in range(len(spots)) if rank not in known]
    copies = [{*ranks, *(kept.of[rank] for rank in ranks if kept)} - {-1} for ranks in holders]
    safe: Reach = "nothing"
    for reach in REACHES[1:]:
        if reach == "rack" and not _has_racks(spots):
            break
        alone = [len({_place(spots, rank, reach) for rank in found}) == 1 for found in copies]
        if any(alone):
            short = {rank for ranks, only in zip(holders, alone) if only for rank in ranks}
            return Survival(safe, tuple(sorted(short)))
        safe = reach
    return Survival(safe)


def needs_snapshots(spots: Sequence[Spot], *, alike: Iterable[Sequence[int]] = ()) -> bool:
    """Return True if twins alone do not cover the loss of any one node; on one node, of any one process."""
    required: Reach = "node" if len({spot.node for spot in spots}) > 1 else "process"
    return REACHES.index(survival(spots, alike=alike).reach) < REACHES.index(required)


def _place(spots: Sequence[Spot], rank: int, reach: Reach) -> Union[str, int]:
    return rank if reach == "process" else spots[rank].node if reach == "node" else spots[rank].rack


def _has_racks(spots: Sequence[Spot]) -> bool:
    racks = {spot.rack for spot in spots}
    return "" not in racks and len(racks) > 1


def _groups(spots: Sequence[Spot], reach: Reach) -> list[list[int]]:
    found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for rank in sorted(range(len(spots)), key=lambda rank: spots[rank].node):
        place = _place(spots, rank, reach)
        found[(place, 0) if isinstance(place, str) else ("", place)].append(rank)
    return [found[key] for key in sorted(found)]


def _paired(groups: list[list[int]]) -> list[int]:
    keepers = [-1] * sum(map(len, groups))
    teams = [groups[first : first + 2] for first in range(0, len(groups), 2)]
    if len(teams[-1]) == 1:
        teams[-2:] = [teams[-2] + teams[-1]]
    for team in teams:
        for group, other in zip(team, team[1:] + team[:1]):
            for rank, keeper in zip(group, other):
                keepers[rank] = keeper
    return keepers


def _shifted(groups: list[list[int]]) -> list[int]:
    order = [rank for group in groups for rank in group]
    keepers = [-1] * len(order)
    largest = max(groups, key=len)
    if 2 * len(largest) <= len(order):
        for position, rank in enumerate(order):
            keepers[rank] = order[(position + len(largest)) % len(order)]
        return keepers
    outside = [rank for rank in order if rank not in set(largest)]
    for position, rank in enumerate(largest):
        keepers[rank] = outside[position % len(outside)]
    for position, rank in enumerate(outside):
        keepers[rank] = largest[position]
    return keepers


def _named(ranks: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    more = f" and {len(parts) - 6} more such rows" if len(parts) > 6 else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(parts[:6]) + more
