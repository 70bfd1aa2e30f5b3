"""
Which process gets which rank, at which step training goes on, and where state that is missing comes from.

Survivors keep their ranks, because with the same ranks a repeated step gives the same bits. A lost rank goes to a
spare, of the same node if there is one. A launcher that leaves gets none, and no vote, but only where the others have
processes and votes enough without it; what its processes know and have counts like that of others. Nothing is lost in
silence: a plan that would go back further than the job allows is refused, with what it would take.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast_runtime.membership.view import RankStatus, Slot, Source, Status, View


@dataclass(frozen=True)
class Policy:
    """What a job wants and what it allows."""

    world_size: int
    sharded: bool = False
    """Whether each rank's state is its own; otherwise all ranks have the same. Default: the same, replicas"""
    lost_steps_allowed: int = 0
    """Committed updates that may be done again, when the newest state is gone. Default: none"""


class Hopeless(str):
    """Why there is no view, and why no further process could bring one: only a launcher out of reach may have what is
    missing."""

    __slots__ = ()


def next_view(committed: View, statuses: Sequence[Status], *, policy: Policy) -> View | str:
    """
    The view that follows, or why there is none.

    Args:
        committed: the view before.
        statuses: what each launcher in reach says of its processes; others are lost.
    """
    staying = _staying(committed, statuses, policy)
    places = _places(committed, staying, policy)
    if isinstance(places, str):
        return places
    ranks, spares = places
    stay = {status.node for status in staying}
    leavers = [item for item in _processes(s for s in statuses if s.node not in stay) if item.rank >= 0]
    checkpoint = min((status.checkpoint_step for status in statuses), default=-1)
    source = _Source(ranks=ranks, leavers=leavers, everyone=_processes(statuses), policy=policy)
    known = max((status.known_step for status in statuses), default=0)
    started = known > 0 or any(item.state != "none" or item.snapshots for item in source.everyone)
    fresh = committed.epoch == 0 or not (started or committed.resume_step)
    newest = max([committed.resume_step, known, *(item.committed_step for item in source.everyone)])
    step = source.newest_step()
    donors: tuple[tuple[int, ...], ...] = ((),) * len(ranks)
    stored: Source = "checkpoint"
    made: Source = "fresh"
    origins = tuple(stored for _ in ranks)
    if fresh and not started:
        newest = step = max(checkpoint, 0)
        origins = origins if step else tuple(made for _ in ranks)
    elif step >= 0:
        origins, donors = source.at(step)
    elif checkpoint >= 0:
        step = checkpoint
    else:
        return Hopeless(f"no process has the state of step {newest}, and there is no checkpoint")
    if newest - step > policy.lost_steps_allowed:
        return Hopeless(
            f"going on from step {step} would lose {newest - step} committed steps, "
            f"and {policy.lost_steps_allowed} are allowed"
        )
    nodes = [-1] * len(committed.nodes)
    for status in staying:
        nodes[status.node] = status.incarnation
    return View(
        epoch=committed.epoch + 1,
        nodes=tuple(nodes),
        ranks=tuple(replace(item, rank=rank) for rank, item in enumerate(ranks)),
        spares=tuple(spares),
        resume_step=step,
        sources=origins,
        donors=donors,
        lost_steps=newest - step,
        leavers=tuple(leavers),
    )


def _staying(committed: View, statuses: Sequence[Status], policy: Policy) -> list[Status]:
    """All but those that leave, one after the other, as long as the others have processes and votes enough."""
    size = len(committed.nodes)
    witness = size % 2 == 0 and committed.witness >= 0
    staying = list(statuses)
    for status in statuses:
        others = [other for other in staying if other is not status]
        enough = len(_processes(others)) >= policy.world_size and len(others) + witness >= size // 2 + 1
        if status.leaving and enough:
            staying = others
    return staying


def _processes(statuses: Iterable[Status]) -> list[RankStatus]:
    return sorted((item for status in statuses for item in status.ranks), key=lambda item: item.slot)


def _places(committed: View, statuses: Sequence[Status], policy: Policy) -> tuple[list[RankStatus], list[Slot]] | str:
    """Who has which rank, and who is left."""
    free = {item.slot: item for item in _processes(statuses)}
    chosen: dict[int, RankStatus] = {}
    for rank, before in enumerate(committed.ranks):
        if before.slot in free:
            chosen[rank] = free.pop(before.slot)
    for rank in range(policy.world_size):
        if rank not in chosen and free:
            home = committed.ranks[rank].slot.node if rank < len(committed.ranks) else -1
            slot = min(free, key=lambda slot: (slot.node != home, slot))
            chosen[rank] = free.pop(slot)
    if len(chosen) < policy.world_size:
        return f"{len(chosen)} processes are there and {policy.world_size} are needed"
    return [chosen[rank] for rank in range(policy.world_size)], sorted(free)


@dataclass(frozen=True)
class _Source:
    """Who has which state."""

    ranks: Sequence[RankStatus]
    leavers: Sequence[RankStatus]
    everyone: Sequence[RankStatus]
    policy: Policy

    def newest_step(self) -> int:
        """The newest step whose state is there for every rank; -1 when there is none."""
        candidates = {item.committed_step for item in self.everyone if item.state == "valid"}
        candidates |= {step for item in self.everyone for _, step in item.snapshots}
        ranks = range(len(self.ranks))
        whole = [
            step for step in candidates if all(self._holds(rank, step) or self._givers(rank, step) for rank in ranks)
        ]
        return max(whole, default=-1)

    def at(self, step: int) -> tuple[tuple[Source, ...], tuple[tuple[int, ...], ...]]:
        """Where each rank's state of a step comes from, and who can give it."""
        origins: list[Source] = []
        donors: list[tuple[int, ...]] = []
        for rank in range(len(self.ranks)):
            if self._holds(rank, step):
                origins.append("memory")
                donors.append(())
            else:
                origins.append("buddy" if self.policy.sharded else "peer")
                donors.append(self._givers(rank, step))
        return tuple(origins), tuple(donors)

    def _holds(self, rank: int, step: int) -> bool:
        """Whether the process that has the rank has the state too, in use or as a snapshot of its own."""
        return self._has(self.ranks[rank], rank, step)

    def _has(self, item: RankStatus, rank: int, step: int) -> bool:
        """Whether a process has the state of a rank, as the one that has or had that rank."""
        mine = item.rank in (rank, -1) if self.policy.sharded else True
        in_use = mine and item.rank >= 0 and item.state == "valid" and item.committed_step == step
        return in_use or (rank, step) in item.snapshots

    def _givers(self, rank: int, step: int) -> tuple[int, ...]:
        """
        Ranks whose processes can give the state, those with the fewest receivers of their own node first.

        Those that leave come last: their node may be why they do.
        """
        size = len(self.ranks)
        left = [size + n for n, item in enumerate(self.leavers) if self._has(item, rank, step)]
        if self.policy.sharded:
            buddies = [r for r, item in enumerate(self.ranks) if r != rank and (rank, step) in item.snapshots]
            return (*buddies, *left)
        home = self.ranks[rank].slot.node
        givers = [r for r in range(size) if r != rank and self._has(self.ranks[r], r, step)]
        return (*sorted(givers, key=lambda r: (self.ranks[r].slot.node != home, (r - rank) % size)), *left)
