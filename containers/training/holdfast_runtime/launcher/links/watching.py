"""
Who watches whom. A launcher asks a few others for signs of life, so that this costs it the same in a job of any size.

A connection that is closed tells everybody at once that a launcher has died, and an open one costs nothing. Signs of
life are needed for a launcher that is frozen or cut off. The launchers in reach stand on a ring in an order that has
nothing to do with their numbers, so that neighbours are seldom in one rack and no cut of the network leaves a part of
it unwatched for long; each watches its neighbours on both sides. When one falls silent, those that watched it tell all
others (SWIM, Das et al. 2002, has the same division of work), and two of them are believed: one alone that does not
hear another may have lost its own connection.
"""

import functools
import hashlib
import math
from collections.abc import Iterable, Mapping

NEIGHBOURS = 4
"""Watched on each side of the ring."""
ACCUSERS = 2
"""So many that watched a launcher are believed by those that do not."""

LATE = 4.0
"""A launcher waits for others so many times longer as it, or they, were late."""
MOST = 10.0
"""Times the deadline for signs of life, at most."""
FORGET = 0.9
"""What is left after the time of a beat of how late a launcher was."""


def patience_s(heartbeat_s: float, *, late_s: float) -> float:
    """
    How long another launcher may be silent.

    A launcher that is late itself cannot tell a lost one from one whose signs of life it has not read yet (Lifeguard,
    Dadgar et al. 2018, makes SWIM patient so). Nor can it tell a lost one from one whose signs of life have come late
    all the time, because the other machine or the way to it is busy (Hayashibara et al. 2004, the phi accrual detector,
    judges each by what came from it before).

    Args:
        late_s: How late this launcher was woken lately, or the other one's signs of life came, whichever is more.
    """
    return min(heartbeat_s + LATE * late_s, MOST * heartbeat_s)


def lateness_s(before_s: float, *, late_s: float, beats: float) -> float:
    """
    How late a launcher is, or its signs of life come: the worst of it, less what is forgotten.

    Args:
        before_s: What this was the last time.
        late_s: How late it is this time.
        beats: Times between two signs of life that have passed.
    """
    return max(late_s, before_s * math.pow(FORGET, beats))


def watched(me: int, others: Iterable[int]) -> frozenset[int]:
    """Whom a launcher watches, of those in reach: all of them in a job of up to 9 nodes. Whom it watches watches it."""
    ring = sorted({*others} - {me}, key=_place)
    if len(ring) <= 2 * NEIGHBOURS:
        return frozenset(ring)
    after = sum(_place(other) < _place(me) for other in ring)
    return frozenset(ring[(after + step) % len(ring)] for step in range(-NEIGHBOURS, NEIGHBOURS))


def is_believed(accused_s: Mapping[int, float], *, now_s: float, within_s: float) -> bool:
    """
    Whether a launcher that this one does not watch is silent.

    Args:
        accused_s: By accuser, when it said so.
        within_s: What was said earlier counts no more.
    """
    return sum(now_s - said_s <= within_s for said_s in accused_s.values()) >= ACCUSERS


@functools.cache
def _place(node: int) -> bytes:
    return hashlib.sha256(str(node).encode()).digest()
