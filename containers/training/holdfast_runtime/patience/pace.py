"""Longest silent wait of a rank: a multiple of the job's own step time."""

from dataclasses import dataclass, replace

MULTIPLE = 10
"""Of the longest step: what is ten times as slow as the slowest step is not slow."""
WINDOW = 1000
"""Steps that are remembered: an evaluation after every few hundred steps is part of a job's pace."""


@dataclass(frozen=True)
class Pace:
    """Durations of the newest steps."""

    step: int = -1
    """The newest that is finished."""
    since_s: float | None = None
    """When it was; None where the time until the next one would say nothing."""
    longest: tuple[tuple[int, float], ...] = ()
    """Step and seconds: each longer than all that follow, so that the first is the longest."""


def moved(pace: Pace, *, step: int, now_s: float) -> Pace:
    if step <= pace.step:
        return pace
    if pace.since_s is None:
        return replace(pace, step=step, since_s=now_s)
    seconds = (now_s - pace.since_s) / (step - pace.step)
    kept = tuple(item for item in pace.longest if item[1] > seconds and item[0] > step - WINDOW)
    return Pace(step=step, since_s=now_s, longest=(*kept, (step, seconds)))


def paused(pace: Pace, *, step: int) -> Pace:
    return replace(pace, step=step, since_s=None)


def silence_s(pace: Pace, *, least_s: float, most_s: float) -> float:
    """Return how long a rank may wait for the others, in seconds; the most until a generation has done a step."""
    if not pace.longest or pace.since_s is None:
        return most_s
    return min(max(MULTIPLE * pace.longest[0][1], least_s), most_s)
