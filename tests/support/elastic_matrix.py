"""
The kill matrix of changes of size: kind of change x phase x victim. Data only.

A job of 4 nodes with a rank each and snapshots every other step. "shrink" asks it for 2; "grow" asks for 2 and then
for 4; "lose" kills the node of rank 3, whose launcher does not come back. The faults of a case come in the change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Change = Literal["shrink", "grow", "lose"]
ASKED: dict[Change, tuple[tuple[int, int], ...]] = {"shrink": ((2, 2),), "grow": ((2, 2), (8, 4)), "lose": ()}
"""By kind of change: the sizes that are asked for once a step was committed."""
LOSS = {"kind": "SIGKILL", "phase": "part", "rank": 3, "step": 5, "victims": ["launcher"]}
BEFORE = ("leaving", "boundary")
IN_IT = ("cut", "parts", "placed", "joined", "resized")
STAYERS, OTHERS = (0, 1), (2, 3)


@dataclass(frozen=True)
class Case:
    """One change and what is lost in it."""

    change: Change
    name: str
    faults: tuple[dict[str, Any], ...]


def cases() -> Iterator[Case]:
    """All of them."""
    for phase in (*BEFORE, *IN_IT):
        for rank in STAYERS:
            yield Case("shrink", f"{phase} at stayer {rank}", (_at(phase, rank),))
    for phase in (*BEFORE, "give"):
        for rank in OTHERS:
            yield Case("shrink", f"{phase} at leaver {rank}", (_at(phase, rank),))
    for rank in STAYERS:  # a newcomer has the rows of its place still, and is not cut
        yield Case("grow", f"cut at stayer {rank}", ({**_at("cut", rank), "step": 19, "back": 12},))
    for phase in IN_IT[1:]:
        for rank in OTHERS:
            yield Case("grow", f"{phase} at newcomer {rank}", (_at(phase, rank),))
    for phase in IN_IT:
        for rank in (*STAYERS, 2):
            yield Case("lose", f"{phase} at survivor {rank}", (LOSS, _at(phase, rank)))
    for phase in ("leaving", "cut", "placed", "resized"):
        yield Case("shrink", f"{phase} at the launcher of stayer 1", (_at(phase, 1, "launcher"),))
    for phase in ("boundary", "give"):
        yield Case("shrink", f"{phase} at the launcher of leaver 3", (_at(phase, 3, "launcher"),))
    for phase in ("parts", "joined"):
        yield Case("grow", f"{phase} at the launcher of newcomer 2", (_at(phase, 2, "launcher"),))
    for phase in ("leaving", "cut", "placed", "joined"):
        yield Case("shrink", f"{phase} at stayer 0 and at leaver 2", (_at(phase, 0), _at(_of_leaver(phase), 2)))
    for phase in ("parts", "resized"):
        yield Case("grow", f"{phase} at newcomers 2 and 3", (_at(phase, 2), _at(phase, 3)))
    for kind in ("corrupt", "cut"):
        for change in ("shrink", "grow"):
            yield Case(change, f"{kind} at a donor", ({"kind": kind, "phase": "copy-out"},))
    for kind in ("SIGSEGV", "exit"):
        yield Case("shrink", f"{kind} in parts at stayer 1", ({**_at("parts", 1), "kind": kind},))


def _of_leaver(phase: str) -> str:
    return phase if phase in BEFORE else "give"


def _at(phase: str, rank: int, victim: str = "self") -> dict[str, Any]:
    return {"kind": "SIGKILL", "phase": phase, "rank": rank, "victims": [victim]}
