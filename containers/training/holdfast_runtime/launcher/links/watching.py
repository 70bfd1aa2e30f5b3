"""
Heartbeats: how long another launcher may be silent.

A closed connection reports a dead launcher at once. Heartbeats are for one that is frozen or cut off; each launcher
requests them from its neighbours on the ring (``holdfast_runtime.overlay``) alone.
"""

import math

LATE = 4.0
"""A launcher waits for others so many times longer as it, or they, were late."""
MOST = 10.0
"""Times the deadline for signs of life, at most."""
FORGET = 0.9
"""What is left after the time of a beat of how late a launcher was."""


def patience_s(heartbeat_s: float, *, late_s: float) -> float:
    """
    Longest silence of another launcher, in seconds.

    A launcher that is late itself cannot tell a lost one from one whose signs of life it has not read yet (Lifeguard,
    Dadgar et al. 2018, makes SWIM patient so). Nor can it tell a lost one from one whose signs of life have come late
    all the time, because the other machine or the way to it is busy (Hayashibara et al. 2004, the phi accrual detector,
    judges each by what came from it before).

    Args:
        late_s: How late this launcher was woken lately, or the other one's signs of life came, whichever is more.
    """
    return min(heartbeat_s + LATE * late_s, MOST * heartbeat_s)


def lateness_s(before_s: float, *, late_s: float, beats: float) -> float:
    return max(late_s, before_s * math.pow(FORGET, beats))
