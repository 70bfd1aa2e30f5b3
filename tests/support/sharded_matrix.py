"""
The cases of the kill matrix of sharded jobs: layout x kind of fault x phase x victim. Data only.

Three layouts have three dimensions and eight ranks. Where each part of the model is at two ranks a lost one comes from
its twin; the others have snapshots every other step, of which the step that ``plan`` gives has none: the next has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kill_matrix import Case, Spec
from sharded_jobs import world_of

BACK = 4
"""Steps that a job goes back at most, with a snapshot every other step."""


@dataclass(frozen=True)
class Shape:
    """A layout, and what is lost in it."""

    layout: str
    collectives: tuple[int, ...]
    """Before which of those of a step, in each rank, forward and backward, faults strike."""
    pair: tuple[int, int]
    """Two ranks that are lost at once: no twins, and neither keeps the other's snapshot."""
    twins: bool
    every: int | None = None
    """Updates from one snapshot to the next; where there are twins none are needed."""

    @property
    def world(self) -> int:
        """Ranks in all."""
        return world_of(self.layout)

    @property
    def ranks(self) -> range:
        """Victims: of eight ranks, four."""
        return range(4)


SHAPES = (
    Shape("shard4", (0, 3, 6, 9, 12), (0, 2), twins=False, every=2),
    Shape("replicate2 shard2", (0, 4, 8, 12, 16), (0, 1), twins=True),
    Shape("shard2 tp2", (0, 5, 10, 15, 20), (0, 2), twins=False, every=2),
    Shape("replicate2 tp2", (0, 3, 6, 9, 12), (0, 1), twins=True),
    Shape("pp2 replicate2", (0, 1, 2, 3), (0, 2), twins=True),
    Shape("pp2 shard2", (0, 4, 8, 12), (0, 2), twins=False, every=2),
    Shape("replicate2 shard2 tp2", (0, 6, 12, 18, 24), (0, 1), twins=True),
    Shape("pp2 replicate2 shard2", (0, 4, 8, 12), (0, 1), twins=True),
    Shape("pp2 shard2 tp2", (0, 5, 10, 15), (0, 2), twins=False, every=2),
)


def cases(shape: Shape) -> Iterator[Case]:
    """All of a layout."""
    phases = ("data", *(f"collective:{number}" for number in shape.collectives), "vote", "update", "commit")
    for phase in phases:
        for rank in shape.ranks:
            yield Case(f"SIGKILL in {phase} at rank {rank}", (_at("SIGKILL", phase, rank),))
    middle = f"collective:{shape.collectives[len(shape.collectives) // 2]}"
    for kind in ("SIGSEGV", "exit", "exception"):
        for phase in (middle, "update"):
            yield Case(f"{kind} in {phase} at rank 1", (_at(kind, phase, 1),))
    one, other = shape.pair
    for phase in (middle, "vote", "update"):
        both = {**_at("SIGKILL", phase, one), "victims": ["self", f"rank:{other}"]}
        yield Case(f"SIGKILL in {phase} at ranks {one} and {other}", (both,))
    lost = _at("SIGKILL", middle, 1)
    if shape.twins:  # else all go back some steps, and these would be reached in another one
        # Rank 2 is nowhere the twin of rank 1: one that connects may not have given its state yet.
        for kind, phase, rank in (("SIGKILL", "connect", 2), ("SIGKILL", "confirm", 0), ("exit", "view", 1)):
            yield Case(f"{kind} in {phase} of rank {rank} while rank 1 is made anew", (lost, _at(kind, phase, rank)))
        yield Case("corrupt at the donor", (lost, {"kind": "corrupt", "phase": "copy-out"}))
        yield Case("SIGKILL in the copy", (lost, _at("SIGKILL", "copy-in", 1)))
        yield Case("cut at the donor", (lost, {"kind": "cut", "phase": "copy-out"}))
    else:
        yield from _with_snapshots(shape, lost)
    spare = {**_at("SIGKILL", middle, 3), "victims": ["spare", "self"]}
    yield Case("SIGKILL at the spare and rank 3", (spare,))


def _with_snapshots(shape: Shape, lost: Spec) -> Iterator[Case]:
    """While one is taken, brought and kept, and while a lost part comes back from its keeper."""
    for rank in shape.ranks:
        yield Case(f"SIGKILL in the snapshot of rank {rank}", (_of_snapshot("SIGKILL", "snapshot", rank),))
    for kind in ("SIGKILL", "exception"):
        yield Case(f"{kind} while rank 1 brings its snapshot", (_of_snapshot(kind, "bring", 1),))
        yield Case(f"{kind} at the keeper rank 2 while it gets one", (_of_snapshot(kind, "keep", 2),))
    for kind in ("corrupt", "cut"):
        yield Case(f"{kind} at the keeper of rank 1", (lost, {"kind": kind, "phase": "hand-out", "back": BACK}))
    again = {"kind": "SIGKILL", "phase": "fetch", "rank": 1, "back": BACK}
    yield Case("SIGKILL at rank 1 while its part comes from the keeper", (lost, again))


def nodes(shape: Shape) -> Iterator[Case]:
    """A launcher is killed, and with it half of the ranks."""
    middle = f"collective:{shape.collectives[len(shape.collectives) // 2]}"
    for phase, rank in ((middle, 0), ("vote", shape.world - 1), ("update", 0)):
        fault = {**_at("SIGKILL", phase, rank), "victims": ["launcher"]}
        yield Case(f"SIGKILL of the launcher in {phase} of rank {rank}", (fault,))


def hangs(shape: Shape) -> Iterator[Case]:
    """A rank that is alive and silent in the middle of a step, with its peers in collectives of their own groups."""
    middle = f"collective:{shape.collectives[len(shape.collectives) // 2]}"
    yield Case("SIGSTOP in a collective at rank 2", (_at("SIGSTOP", middle, 2),))


def _of_snapshot(kind: str, phase: str, rank: int) -> Spec:
    """Of one of the next two: where the one before is not safe yet, one is left out."""
    return {"kind": kind, "phase": phase, "rank": rank, "step": 3, "back": 2}


def _at(kind: str, phase: str, rank: int) -> Spec:
    return {"kind": kind, "phase": phase, "rank": rank}
