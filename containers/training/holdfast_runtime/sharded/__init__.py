"""
A model that is divided among ranks: which part is whose, what follows its groups, its vote, its snapshots, and what of
a program cannot go on in place.
"""

from holdfast_runtime.sharded.ballot import Ballot, gathered, gathered_bytes
from holdfast_runtime.sharded.job_checkpoints import JobCheckpoints
from holdfast_runtime.sharded.job_snapshots import JobSnapshots, RankPlace, SnapshotPace, check_memory, in_one_place
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

__all__ = [
    "Ballot",
    "Facts",
    "JobCheckpoints",
    "JobSnapshots",
    "NoCollectives",
    "RankPlace",
    "Sharded",
    "SnapshotPace",
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
