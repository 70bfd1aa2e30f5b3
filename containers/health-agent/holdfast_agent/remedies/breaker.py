"""
Circuit breaker: limit of nodes taken at once, agreed among agents that only see each other's marks. Pure.

An agent marks its node as claimed, waits for the marks of others to settle, and reads: of simultaneous claims the
smallest names go first. It marks "going" before it requests anything, and reads again: where more go than allowed,
each that sees this yields. The last one to mark always sees all others, so the limit holds whatever the delays; the
waiting and the names only ensure progress.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

SETTLE_S = 1.5
WINDOW_S = 3600.0
STALE_S = 120.0
"""A claim that is not renewed for so long belongs to an agent that exited."""
RENEW_S = 30.0


class Stage(Enum):
    CLAIM = "claim"
    ASKED = "asked"
    """The remedy is asked for, or about to be: counts for an hour."""
    REFUSED = "refused"
    """The breaker was open; manual approval required."""
    ALLOW = "allow"
    """Approved manually: this node may be taken."""


@dataclass(frozen=True)
class Mark:
    """Mark of one node; ``since_s`` is UTC seconds."""

    node: str
    stage: Stage
    remedy: str = ""
    since_s: float = 0.0


class Ruling(Enum):
    GO = "go"
    WAIT = "wait"
    """Other claims come first; retry later."""
    OPEN = "open"
    """The limit is reached: manual approval required."""


def most(*, nodes: int, share: float) -> int:
    return max(1, int(nodes * share + 1e-9))


def is_unlimited(*, nodes: int, share: float) -> bool:
    """True if all nodes may go at once."""
    return most(nodes=nodes, share=share) >= nodes


def taken(marks: Iterable[Mark], *, now_s: float) -> "frozenset[str]":
    """Nodes requested within the window; a time in the future comes from a wrong clock."""
    return frozenset(mark.node for mark in marks if mark.stage is Stage.ASKED and now_s - mark.since_s < WINDOW_S)


def ruling(marks: Iterable[Mark], *, me: str, nodes: int, share: float, now_s: float) -> Ruling:
    """Decide on a claim by the settled marks of all nodes; the node's own earlier remedies do not count."""
    marks = tuple(marks)
    own = [mark.stage for mark in marks if mark.node == me]
    if Stage.ALLOW in own:
        return Ruling.GO
    free = most(nodes=nodes, share=share) - len(taken(marks, now_s=now_s) - {me})
    if free <= 0:
        return Ruling.OPEN
    if not own:
        return Ruling.WAIT
    ahead = [mark for mark in marks if mark.stage is Stage.CLAIM and mark.node < me and now_s - mark.since_s < STALE_S]
    return Ruling.GO if len(ahead) < free else Ruling.WAIT


def confirmed(marks: Iterable[Mark], *, me: str, nodes: int, share: float, now_s: float) -> bool:
    """True if this node's "going" mark is visible and no more go than allowed."""
    going = taken(marks, now_s=now_s)
    return me in going and len(going) <= most(nodes=nodes, share=share)
