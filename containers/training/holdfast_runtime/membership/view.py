"""Views: ranks of processes, step to resume, sources of lost state."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

State = Literal["none", "valid", "torn"]
"""none: never had any. valid: that of committed_step. torn: the process stopped inside its own update."""

Source = Literal["fresh", "memory", "peer", "buddy", "checkpoint", "parts"]
"""Where a rank's state comes from: made by the script, kept, a replica, a buddy's memory, storage, or the parts of all
ranks of another size."""


Snapshot = tuple[int, int]
"""The rank whose shard it is (in an elastic job the number of the part), and the step that it is of."""

PARTS = 1 << 16


def part_number(rank: int, size: int) -> int:
    """Return the number of a rank's part; parts of two sizes differ. ``size`` 0: the size never changes."""
    return size * PARTS + rank


@dataclass(frozen=True)
class Asked:
    """The size that was asked for last."""

    serial: int = 0
    """Counts what was asked for: the highest is the last."""
    ranks: int = 0
    """0 for as many as there can be."""


@dataclass(frozen=True, order=True)
class Ballot:
    """A proposal's number: the higher one wins."""

    round: int
    node: int


@dataclass(frozen=True, order=True)
class Slot:
    """One process: the incarnation counts those that were in this place of this node."""

    node: int
    index: int
    incarnation: int = 0


@dataclass(frozen=True)
class RankStatus:
    """Report of a process that has left all collectives."""

    slot: Slot
    rank: int
    """The rank that it held in the last view; -1 for a spare or a newcomer."""
    committed_step: int = 0
    """Optimizer updates that it has finished."""
    state: State = "none"
    digest: str = ""
    """Of its state at committed_step; empty when it has computed none."""
    host: str = ""
    port: int = 0
    """Where it sends and receives state."""
    snapshots: tuple[Snapshot, ...] = ()
    """Shards that it keeps in memory, its own among them."""
    twins: tuple[int, ...] | None = None
    """Ranks whose state is the same as that of its own rank. Default: all ranks, they are replicas"""
    prepared: bool = False
    """Whether it has all that the update after committed_step takes, and can do it alone."""
    part: int = -1
    """Number of the part of the state that it trains with, in an elastic sharded job; -1 in any other."""
    built: int = -1
    """The rank that a process without one has made its model for, or does; -1 for any other process."""
    moves: bool = False
    """Whether that can become the model of another rank in place."""


@dataclass(frozen=True)
class Status:
    """Report of a launcher about its processes, for the next view."""

    node: int
    incarnation: int
    """What views call the launcher of this node: another number for each that was in this place."""
    ranks: tuple[RankStatus, ...] = ()
    checkpoint_step: int = -1
    """The newest complete checkpoint in storage; -1 without one, -2 where no process has searched yet."""
    known_step: int = 0
    """Newest step ever reported, also by processes that are lost: none is forgotten in silence."""
    leaving: bool = False
    """Whether it gives its ranks away: its processes get none, where others can take them, and give their state."""
    asked: Asked = Asked()
    places: int = 0
    """Processes that it has or will have again."""
    done: bool = False
    """Whether a process of it has done all steps of the program, and waited for the others."""


@dataclass(frozen=True)
class View:
    """Ranks of processes in a generation."""

    generation: int
    nodes: tuple[int, ...]
    """Identity of every expected launcher, -1 for one that is not in the view. Those in it vote on the next."""
    ranks: tuple[RankStatus, ...] = ()
    """By rank."""
    spares: tuple[Slot, ...] = ()
    resume_step: int = 0
    sources: tuple[Source, ...] = ()
    """By rank."""
    donors: tuple[tuple[int, ...], ...] = ()
    """By rank: who can give its state, the best first; empty for one that has it. Those of ``leavers`` follow the
    ranks: the first of them is called what the number of ranks is."""
    lost_steps: int = 0
    """Updates that had been committed and are done again; more than 0 only with the same bits, or where the job allows
    it."""
    witness: int = -1
    """Identity of the witness that votes on the next view; -1 without one."""
    leavers: tuple[RankStatus, ...] = ()
    """Processes of launchers that leave: they have no rank and no vote any more, and give their state while it is
    copied."""
    asked: Asked = Asked()
    cut: int = 0
    """Ranks that the state was divided among so far, where it is divided again among another number."""
    parts: tuple[tuple[int, ...], ...] = ()
    """By rank of that size: who can give its part, numbered as donors are."""

    def read(self) -> "View":
        return self


@dataclass(frozen=True)
class Unread:
    """A view as a text: who accepts it keeps it for a proposer, and needs nothing that is in it."""

    text: str
    reading: Callable[[str], View] = field(compare=False, repr=False)

    def read(self) -> View:
        """The view. Raises what ``reading`` does."""
        return self.reading(self.text)
