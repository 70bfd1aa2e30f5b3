"""
State that no other rank has, kept safe: in a buddy's memory every few steps, in storage now and then.

``Snapshots`` and ``Checkpoints`` are for fully sharded jobs, whose ranks have no replica to copy from: a lost node
costs a few steps, and storage is for when more is lost than that. ``ReplicaCheckpoints`` is the storage of jobs whose
ranks are all the same.
"""

from holdfast_runtime.snapshots._buddies import Buddies, buddies
from holdfast_runtime.snapshots._checkpoints import Checkpoints, Outcome
from holdfast_runtime.snapshots._layout import SnapshotError
from holdfast_runtime.snapshots._manifest import complete_steps, newest_complete, verify
from holdfast_runtime.snapshots._replicas import ReplicaCheckpoints
from holdfast_runtime.snapshots._shard import Shard, Stateful
from holdfast_runtime.snapshots._snapshots import Agree, Place, Snapshots, agree_by

__all__ = [
    "Agree",
    "Buddies",
    "Checkpoints",
    "Outcome",
    "Place",
    "ReplicaCheckpoints",
    "Shard",
    "SnapshotError",
    "Snapshots",
    "Stateful",
    "agree_by",
    "buddies",
    "complete_steps",
    "newest_complete",
    "verify",
]
