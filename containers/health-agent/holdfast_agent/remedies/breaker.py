"""
How many nodes may be taken, agreed among agents that only see each other's marks. Pure.

An agent marks its own node as claimed, lets the marks of others that do the same settle, and looks: of those who claim
at once the smallest names go first. Who goes marks that before anything is asked for, and looks once more: where more
go than may, who sees it steps back. The last one to mark always sees all others, so never too many go, however slow
anything is; the waiting and the names only see to it that somebody does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

SETTLE_S = 1.5
WINDOW_S = 3600.0
STALE_S = 120.0
"""A claim that nobody has renewed is one of an agent that ended."""
RENEW_S = 30.0


class Stage(Enum):
    """What a node's mark says."""

    CLAIM = "claim"
    ASKED = "asked"
    """The remedy is asked for, or about to be: counts for an hour."""
    REFUSED = "refused"
    """The breaker was open; a person has to look."""
    ALLOW = "allow"
    """A person has looked, and lets this node be taken."""


@dataclass(frozen=True)
class Mark:
    """The mark of one node; ``since_s`` is UTC seconds."""

    node: str
    stage: Stage
    remedy: str = ""
    since_s: float = 0.0


class Ruling(Enum):
    """What the breaker says to one node."""

    GO = "go"
    WAIT = "wait"
    """Others claim, too, and come first; there may be room after them."""
    OPEN = "open"
    """As many as may be are being taken: a person has to look."""


def most(*, nodes: int, share: float) -> int:
    """How many nodes may be taken within the window."""
    return max(1, int(nodes * share + 1e-9))


def is_closed_to_nobody(*, nodes: int, share: float) -> bool:
    """Whether all nodes may be taken at once, so that nobody has to wait for anybody."""
    return most(nodes=nodes, share=share) >= nodes


def taken(marks: Iterable[Mark], *, now_s: float) -> "frozenset[str]":
    """Nodes that were asked for within the window; a time in the future is that of a clock that is wrong."""
    return frozenset(mark.node for mark in marks if mark.stage is Stage.ASKED and now_s - mark.since_s < WINDOW_S)


def ruling(marks: Iterable[Mark], *, me: str, nodes: int, share: float, now_s: float) -> Ruling:
    """
    For one node that has claimed; its own earlier remedies do not count against it.

    Args:
        marks: Of all nodes, as seen after the claim had time to settle.
        me: The node's name.
        nodes: How many there are.
    """
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
    """Whether this node, which has marked that it goes, may: it is seen to have, and no more than may go do."""
    going = taken(marks, now_s=now_s)
    return me in going and len(going) <= most(nodes=nodes, share=share)
