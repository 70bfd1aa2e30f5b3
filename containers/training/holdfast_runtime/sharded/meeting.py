"""
What each rank tells all others when a generation begins, before anything is sent or trained: how its groups were made,
which part of the state it has, what it keeps for others. The rules that follow from it are pure.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from torch._C._distributed_c10d import Store

from holdfast_common.placement import Spot, Survival, keepers, survival
from holdfast_runtime.membership import part_number


@dataclass(frozen=True)
class Facts:
    node: int
    """Of the same number: fails together."""
    host: str
    keeper: int
    """Port at which it keeps snapshots; 0 for none."""
    every: int
    """Updates from one snapshot to the next; 0 for as many as their cost asks for, -1 for none ever."""
    held: tuple[tuple[int, int], ...]
    """Rank and step of the snapshots in its memory."""
    groups: str
    """Digest of the groups that its script made, in their order."""
    holds: str
    """Digest of which part of the state it has: ranks with the same one are twins."""
    torch: str
    rack: str = ""
    """Of the node. Default: not known"""

    @property
    def spot(self) -> Spot:
        return Spot(self.node, self.rack)


def exchange(store: Store, facts: Facts, *, rank: int, world_size: int) -> tuple[Facts, ...]:
    """Tell and hear, by rank. Raises what the store does when somebody is gone."""
    store.set(f"facts/{rank}", json.dumps(asdict(facts)))
    found = []
    for other in range(world_size):
        value = json.loads(store.get(f"facts/{other}"))
        found.append(Facts(**{**value, "held": tuple((owner, step) for owner, step in value["held"])}))
    return tuple(found)


def twins(facts: Sequence[Facts], rank: int) -> tuple[int, ...]:
    return tuple(other for other, fact in enumerate(facts) if other != rank and fact.holds == facts[rank].holds)


def alike(facts: Sequence[Facts]) -> tuple[tuple[int, ...], ...]:
    found: dict[str, list[int]] = {}
    for rank, fact in enumerate(facts):
        found.setdefault(fact.holds, []).append(rank)
    return tuple(tuple(ranks) for ranks in found.values())


def survives(facts: Sequence[Facts], *, snapshots: bool) -> Survival:
    spots, same = [fact.spot for fact in facts], alike(facts)
    return survival(spots, alike=same, kept=keepers(spots, alike=same) if snapshots else None)


def agreed_snapshot(facts: Sequence[Facts], *, until: int, cut: int = 0) -> int:
    """
    The newest step up to one of which every rank's snapshot is somewhere; -1 without one.

    Args:
        cut: ranks that the state is divided among, where that may change. Default: it never does
    """
    there = {item for fact in facts for item in fact.held if item[1] <= until}
    steps = {step for _, step in there}
    return max(
        (step for step in steps if all((part_number(rank, cut), step) in there for rank in range(len(facts)))),
        default=-1,
    )


def odd_ones(facts: Sequence[Facts], of: Callable[[Facts], object]) -> tuple[int, ...]:
    values = [of(fact) for fact in facts]
    usual, _ = max(Counter(values).items(), key=lambda item: (item[1], -values.index(item[0])))
    return tuple(rank for rank, what in enumerate(values) if what != usual)


def disagreement(facts: Sequence[Facts]) -> str:
    """Reason why ranks cannot train together, with what to do; empty for none."""
    if odd := odd_ones(facts, lambda fact: fact.groups):
        return (
            f"{_ranks(odd)} made other groups, or in another order, than the other ranks; every rank has to make "
            "the same groups in the same order, also those that it is not in, because they are found again by number"
        )
    if odd := odd_ones(facts, lambda fact: fact.torch):
        return f"torch is {facts[odd[0]].torch} at {_ranks(odd)}, and not as at the others; install the same everywhere"
    if odd := odd_ones(facts, lambda fact: fact.every):
        return (
            f"snapshot_every is {_asked(facts[odd[0]].every)} at {_ranks(odd)}, and not as at the others; it must be "
            "the same on all ranks"
        )
    return ""


def _asked(every: int) -> str:
    return {0: "by cost", -1: '"never"'}.get(every, str(every))


def _ranks(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (" and more" if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
