"""Rules over the lines of a job: matches, and the state that they amount to. Pure."""

from holdfast_operator.logs.matching import Match, matched
from holdfast_operator.logs.watch import LogWatch, Trip

__all__ = ["LogWatch", "Match", "Trip", "matched"]
