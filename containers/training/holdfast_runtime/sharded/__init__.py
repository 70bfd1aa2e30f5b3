"""
A model that is divided among ranks: which part is whose, what follows its groups, its vote, its snapshots, and what of
a program cannot go on in place.
"""

from holdfast_runtime.sharded.ballot import Ballot, gathered, gathered_bytes
from holdfast_runtime.sharded.kept import Joined, Kept, Pace, check_memory, in_one_place
from holdfast_runtime.sharded.meeting import Facts, agreed_snapshot, alike, disagreement, exchange, survives, twins
from holdfast_runtime.sharded.model import Sharded
from holdfast_runtime.sharded.refusals import (
    NoCollectives,
    check,
    check_length,
    check_tier,
    snapshots_asked,
    survival_asked,
)
from holdfast_runtime.sharded.stored import Stored

__all__ = [
    "Ballot",
    "Facts",
    "Joined",
    "Kept",
    "NoCollectives",
    "Pace",
    "Sharded",
    "Stored",
    "agreed_snapshot",
    "alike",
    "check",
    "check_length",
    "check_memory",
    "check_tier",
    "disagreement",
    "exchange",
    "gathered",
    "gathered_bytes",
    "in_one_place",
    "snapshots_asked",
    "survival_asked",
    "survives",
    "twins",
]
