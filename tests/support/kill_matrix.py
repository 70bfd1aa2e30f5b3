"""
The cases of the kill matrix: kind of fault x phase x victim. Data only.

A job takes many cases, each at steps of its own: nothing else happens until the job has been calm again for a few
steps. A case is judged by the marks of its own faults and by its own steps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]
PHASES = ("data", "forward", "bucket:0", "bucket:1", "bucket:2", "vote", "update", "commit")
RECOVERY = ("ready", "view", "connect", "confirm")
ENDS = ("SIGKILL", "SIGSEGV", "exception", "exit")


@dataclass(frozen=True)
class Case:
    """One fault, or several that belong together."""

    name: str
    faults: tuple[Spec, ...]
    """Their step is counted from the one that the place in a job gives; default: that one."""


def deaths(*, ranks: Iterable[int] = range(4), kinds: Sequence[str] = ENDS) -> Iterator[Case]:
    """Each kind of end, in each phase, at each rank."""
    for kind in kinds:
        for phase in PHASES:
            for rank in ranks:
                yield Case(f"{kind} in {phase} at rank {rank}", ({"kind": kind, "phase": phase, "rank": rank},))


def hangs(*, ranks: Iterable[int] = (0, 2)) -> Iterator[Case]:
    """A process that is alive and does nothing."""
    yield from deaths(ranks=ranks, kinds=("SIGSTOP",))


def pairs() -> Iterator[Case]:
    """Two ranks at once."""
    for one, other in ((0, 1), (1, 3), (0, 2), (2, 3)):
        for phase in ("forward", "bucket:1", "vote", "update"):
            fault = {"kind": "SIGKILL", "phase": phase, "rank": one, "victims": ["self", f"rank:{other}"]}
            yield Case(f"SIGKILL in {phase} at ranks {one} and {other}", (fault,))


def spares() -> Iterator[Case]:
    """The warm spare, alone and together with the rank that would need it."""
    for phase in ("forward", "bucket:1", "vote", "update"):
        alone = {"kind": "SIGKILL", "phase": phase, "rank": 1, "victims": ["spare"]}
        yield Case(f"SIGKILL in {phase} at the spare", (alone,))
        both = {"kind": "SIGKILL", "phase": phase, "rank": 3, "victims": ["spare", "self"]}
        yield Case(f"SIGKILL in {phase} at the spare and rank 3", (both,))


def during_recovery() -> Iterator[Case]:
    """A second fault while the first is being recovered from: at a survivor and at the newcomer."""
    for kind in ("SIGKILL", "exception", "exit"):
        for phase in RECOVERY:
            for who, rank in (("a survivor", 0), ("the newcomer", 2)):
                # The newcomer was ready long before it had a rank.
                if (phase, rank) != ("ready", 2):
                    yield Case(f"{kind} in {phase} at {who}", (_lost(2), {"kind": kind, "phase": phase, "rank": rank}))


def during_copy() -> Iterator[Case]:
    """At the donor and on the link while state is copied, and at the receiver."""
    for lost in (1, 2, 3):
        for kind in ("corrupt", "cut", "slow", "SIGKILL", "exit"):
            yield Case(f"{kind} at the donor of rank {lost}", (_lost(lost), {"kind": kind, "phase": "copy-out"}))
        for kind in ("SIGKILL", "exception"):
            fault = {"kind": kind, "phase": "copy-in", "rank": lost}
            yield Case(f"{kind} in the copy at rank {lost}", (_lost(lost), fault))


def nodes(*, ranks: Iterable[int] = range(4)) -> Iterator[Case]:
    """A launcher is killed, and all of its node with it."""
    for phase in ("data", "bucket:1", "vote", "update"):
        for rank in ranks:
            fault = {"kind": "SIGKILL", "phase": phase, "rank": rank, "victims": ["launcher"]}
            yield Case(f"SIGKILL of the launcher in {phase} of rank {rank}", (fault,))


def stopped() -> Iterator[Case]:
    """Each process of a node, ended or stopped by its process id: nobody says goodbye."""
    for kind in ("SIGKILL", "SIGSTOP"):
        for victim in ("self", "spare", "forker"):
            fault = {"kind": kind, "phase": "bucket:1", "rank": 1, "victims": [victim]}
            yield Case(f"{kind} by process id at {victim}", (fault,))
            if victim != "self":
                lost = {"kind": "SIGKILL", "phase": "vote", "rank": 2}
                yield Case(f"{kind} by process id at {victim} and rank 2 right after it", (fault, lost))


def stopped_launchers() -> Iterator[Case]:
    """A launcher that is alive and does nothing, with ranks that know nothing of it."""
    for rank in (0, 2):
        fault = {"kind": "SIGSTOP", "phase": "bucket:1", "rank": rank, "victims": ["launcher"]}
        yield Case(f"SIGSTOP of the launcher of rank {rank}", (fault,))


def first_step() -> Iterator[Case]:
    """All in step 0, one after the other: each phase is reached again after the case before."""
    for number, phase in enumerate(PHASES[:-1]):
        fault = {"kind": "SIGKILL", "phase": phase, "rank": number % 4}
        yield Case(f"SIGKILL in {phase} of the first step at rank {number % 4}", (fault,))


def _lost(rank: int) -> Spec:
    return {"kind": "SIGKILL", "phase": "bucket:1", "rank": rank}


@dataclass(frozen=True)
class Placed:
    """A case with its place in a job."""

    case: Case
    step: int
    faults: range
    """Numbers of its faults in the job's list."""


@dataclass(frozen=True)
class Plan:
    """A job of many cases."""

    faults: tuple[Spec, ...]
    cases: tuple[Placed, ...]
    steps: int


def plan(cases: Iterable[Case], *, first: int = 3, spacing: int = 6) -> Plan:
    """Put cases one after the other."""
    faults: list[Spec] = []
    placed: list[Placed] = []
    for number, case in enumerate(cases):
        step = first + spacing * number
        placed.append(Placed(case=case, step=step, faults=range(len(faults), len(faults) + len(case.faults))))
        faults += [{**fault, "step": step + fault.get("step", 0)} for fault in case.faults]
    return Plan(faults=tuple(faults), cases=tuple(placed), steps=first + spacing * len(placed) + 3)
