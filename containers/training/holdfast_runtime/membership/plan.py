"""
Plan of the next view: ranks of processes, step to resume, sources of missing state.

Survivors keep their ranks, because with the same ranks a repeated step gives the same bits. A lost rank goes to the
spare that is built for it; else to one whose model can become that of the rank; else to one that is built for none, of
the same node if there is one; else another process begins in the place of one that is built for another rank. Its state
comes from a rank that has the same, at the running step: any rank where all are replicas, a twin in a sharded job.
Where there is none, all ranks go back to the newest snapshot that is there of every rank: the job takes snapshots for
that, and those steps are done again with the same bits. So is a step that only lost processes had finished: it may be
committed by a rank that is lost before the others have received the last sums of its vote.

A launcher that leaves gets no rank, and no vote, but only where the others have processes and votes enough without it;
what its processes know and have counts like that of others. Nothing is lost in silence: a plan that would go back
further than the job allows is refused, with what it would take.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from holdfast_runtime.membership.parts import Recut, holders, recuts, uses
from holdfast_runtime.membership.refusal import LostState
from holdfast_runtime.membership.sizes import newest as last_asked
from holdfast_runtime.membership.sizes import next_size
from holdfast_runtime.membership.view import RankStatus, Slot, Source, Status, View, part_number

UNKNOWN = -2
"""Of a launcher whose processes have not made their model yet, and so do not know of checkpoints."""


@dataclass(frozen=True)
class Policy:
    """Policy of a job."""

    world_size: int
    lost_steps_allowed: int = 0
    """Committed updates that may be done again, when the newest state is gone. Default: none"""
    sizes: tuple[int, ...] = ()
    """Numbers of ranks that an elastic job may have, the largest of them ``world_size``. Default: only that"""
    waited: bool = True
    """Whether processes that are being started had their time. Default: they had"""

    @property
    def least(self) -> int:
        return min(self.sizes, default=self.world_size)


class NoFurtherView(str):
    """Reason why there is no view and no further process could bring one: only a launcher out of reach may have what is
    missing."""

    __slots__ = ()


def next_view(committed: View, statuses: Sequence[Status], *, policy: Policy) -> View | str:
    """
    The view that follows, or why there is none.

    Args:
        statuses: what each launcher in reach says of its processes; others are lost.
    """
    staying = _staying(committed, statuses, policy)
    asked = last_asked((committed.asked, *(status.asked for status in statuses)))
    size = _size(committed, staying, policy=policy, asked=asked.ranks)
    places = size if isinstance(size, str) else _places(committed, staying, size)
    if isinstance(places, str):
        return places
    ranks, spares = places
    stay = {status.node for status in staying}
    leavers = [item for item in _processes(s for s in statuses if s.node not in stay) if item.rank >= 0]
    checkpoint = min((status.checkpoint_step for status in statuses if status.checkpoint_step > UNKNOWN), default=-1)
    known = max((status.known_step for status in statuses), default=0)
    source = _Source(ranks=ranks, leavers=leavers, everyone=_processes(statuses), known=known)
    started = known > 0 or any(item.state != "none" or item.snapshots for item in source.everyone)
    fresh = committed.generation == 0 or not (started or committed.resume_step)
    newest = max([committed.resume_step, known, *(item.committed_step for item in source.everyone)])
    step = source.newest_step()
    recut = source.recut(newer_than=step) if policy.sizes else None
    parts: tuple[tuple[int, ...], ...] = ()
    donors: tuple[tuple[int, ...], ...] = ((),) * len(ranks)
    kept = False
    stored: Source = "checkpoint"
    made: Source = "fresh"
    rebuilt: Source = "parts"
    origins = tuple(stored for _ in ranks)
    if fresh and not started:
        newest = step = max(checkpoint, 0)
        origins = origins if step else tuple(made for _ in ranks)
    elif recut is not None:
        step, origins = recut.step, tuple(rebuilt for _ in ranks)
        leavers, parts = source.given(recut)
        kept = step in source.snapshots
    elif step >= 0:
        origins, donors = source.at(step)
        kept = step in source.snapshots or source.repeats(step, newest=newest, size=len(committed.ranks))
    elif checkpoint >= 0:
        step = checkpoint
    elif newest == 0:  # nothing is trained yet: all begin again
        step, origins = 0, tuple(made for _ in ranks)
    else:
        return NoFurtherView(_lost(committed, statuses, source, newest).without_checkpoint())
    if newest - step > policy.lost_steps_allowed and not kept:
        lost = _lost(committed, statuses, source, newest)
        return NoFurtherView(lost.older(step, stored=step == checkpoint, allowed=policy.lost_steps_allowed))
    nodes = [-1] * len(committed.nodes)
    for status in staying:
        nodes[status.node] = status.incarnation
    return View(
        generation=committed.generation + 1,
        nodes=tuple(nodes),
        ranks=tuple(replace(item, rank=rank) for rank, item in enumerate(ranks)),
        spares=tuple(spares),
        resume_step=step,
        sources=origins,
        donors=donors,
        lost_steps=newest - step,
        leavers=tuple(leavers),
        asked=asked,
        cut=recut.cut if parts and recut is not None else 0,
        parts=parts,
    )


def _lost(committed: View, statuses: Sequence[Status], source: "_Source", newest: int) -> LostState:
    present = {item.slot for item in source.everyone}
    return LostState(
        newest=newest,
        gone=tuple(rank for rank, item in enumerate(committed.ranks) if item.slot not in present),
        missing=source.missing(size=len(committed.ranks)),
        done=any(status.done for status in statuses),
    )


def _size(committed: View, staying: Sequence[Status], *, policy: Policy, asked: int) -> int | str:
    if not policy.sizes:
        return policy.world_size
    return next_size(
        policy.sizes,
        current=len(committed.ranks),
        asked=asked,
        there=len(_processes(staying)),
        places=sum(status.places for status in staying),
        waited=policy.waited,
    )


def _staying(committed: View, statuses: Sequence[Status], policy: Policy) -> list[Status]:
    size = len(committed.nodes)
    witness = size % 2 == 0 and committed.witness >= 0
    staying = list(statuses)
    for status in (each for each in statuses if each.leaving):
        others = [other for other in staying if other is not status]
        enough = len(_processes(others)) >= policy.least and len(others) + witness >= size // 2 + 1
        if enough:
            staying = others
    return staying


def _processes(statuses: Iterable[Status]) -> list[RankStatus]:
    return sorted((item for status in statuses for item in status.ranks), key=lambda item: item.slot)


def _places(committed: View, statuses: Sequence[Status], size: int) -> tuple[list[RankStatus], list[Slot]] | str:
    free = {item.slot: item for item in _processes(statuses)}
    chosen: dict[int, RankStatus] = {}
    for rank, before in enumerate(committed.ranks[:size]):
        if before.slot in free:
            chosen[rank] = free.pop(before.slot)
    for as_built in (True, False):
        for rank in [rank for rank in range(size) if rank not in chosen]:
            takers = {slot: item for slot, item in free.items() if item.built == rank or not as_built}
            if takers:
                home = committed.ranks[rank].slot.node if rank < len(committed.ranks) else -1
                slot = min(takers, key=lambda slot: (_lacks(free[slot]), slot.node != home, slot))
                chosen[rank] = free.pop(slot)
    if len(chosen) < size:
        return f"{len(chosen)} processes are available, {size} are required"
    return [chosen[rank] for rank in range(size)], sorted(free)


def _lacks(item: RankStatus) -> int:
    return 0 if item.moves else 1 if item.built < 0 else 2


@dataclass(frozen=True)
class _Source:
    ranks: Sequence[RankStatus]
    leavers: Sequence[RankStatus]
    everyone: Sequence[RankStatus]
    known: int

    @cached_property
    def cut(self) -> int:
        return len(self.ranks) if any(item.part >= 0 for item in self.everyone) else 0

    @cached_property
    def snapshots(self) -> set[int]:
        return {step for item in self.everyone for _, step in item.snapshots}

    @cached_property
    def candidates(self) -> set[int]:
        candidates = {item.committed_step for item in self.everyone if item.state == "valid"} | self.snapshots
        if any(item.prepared for item in self.everyone):  # who finished it may be gone, and all others can do it too
            candidates.add(self.known)
        return candidates

    def newest_step(self) -> int:
        """The newest step whose state is there for every rank; -1 when there is none."""
        ranks = range(len(self.ranks))
        whole = [
            step
            for step in self.candidates
            if all(self._holds(rank, step) or self._givers(rank, step) for rank in ranks)
        ]
        return max(whole, default=-1)

    def repeats(self, step: int, *, newest: int, size: int) -> bool:
        """Return True if the newest step follows this one, and doing it again gives the same bits."""
        ahead = any(item.committed_step > step for item in self.everyone)
        return newest == step + 1 and not ahead and len(self.ranks) == size

    def missing(self, *, size: int) -> tuple[int, ...]:
        """
        Ranks of a sharded job of this size whose part no process has; none for replicas.

        Of all steps it is the one that lacks the fewest ranks, the newest of those.
        """
        if all(item.twins is None and item.part < 0 for item in self.everyone):
            return ()
        cut = size if self.cut else 0
        lacking = [
            tuple(rank for rank in range(size) if not holders(self.everyone, rank, step, cut=cut))
            for step in sorted(self.candidates, reverse=True)
        ]
        return min(lacking, key=len, default=tuple(range(size)))

    def recut(self, *, newer_than: int) -> Recut | None:
        steps = [step for step in self.candidates if step > newer_than]
        return recuts(self.everyone, steps=steps, size=len(self.ranks))

    def given(self, recut: Recut) -> tuple[list[RankStatus], tuple[tuple[int, ...], ...]]:
        chosen = {item.slot for item in self.ranks}
        having = {
            place for rank in range(recut.cut) for place in holders(self.everyone, rank, recut.step, cut=recut.cut)
        }
        leavers = [item for place, item in enumerate(self.everyone) if place in having and item.slot not in chosen]
        everyone = [*self.ranks, *leavers]
        return leavers, tuple(holders(everyone, rank, recut.step, cut=recut.cut) for rank in range(recut.cut))

    def at(self, step: int) -> tuple[tuple[Source, ...], tuple[tuple[int, ...], ...]]:
        origins: list[Source] = []
        donors: list[tuple[int, ...]] = []
        for rank in range(len(self.ranks)):
            if self._holds(rank, step):
                origins.append("memory")
                donors.append(())
                continue
            live = self._live(rank, step)
            origins.append("peer" if live else "buddy")
            donors.append(live or self._kept(rank, step))
        return tuple(origins), tuple(donors)

    def _holds(self, rank: int, step: int) -> bool:
        item = self.ranks[rank]
        return uses(item, rank, step, cut=self.cut) or (part_number(rank, self.cut), step) in item.snapshots

    def _givers(self, rank: int, step: int) -> tuple[int, ...]:
        return self._live(rank, step) or self._kept(rank, step)

    def _live(self, rank: int, step: int) -> tuple[int, ...]:
        size, home = len(self.ranks), self.ranks[rank].slot.node
        givers = [r for r in range(size) if r != rank and uses(self.ranks[r], rank, step, cut=self.cut)]
        left = [size + n for n, item in enumerate(self.leavers) if uses(item, rank, step, cut=self.cut)]
        return (*sorted(givers, key=lambda r: (self.ranks[r].slot.node != home, (r - rank) % size)), *left)

    def _kept(self, rank: int, step: int) -> tuple[int, ...]:
        everyone = enumerate((*self.ranks, *self.leavers))
        part = part_number(rank, self.cut), step
        return tuple(r for r, item in everyone if r != rank and part in item.snapshots)
