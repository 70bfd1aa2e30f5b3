"""
State that no other rank has, kept safe: in a buddy's memory every few steps, in storage now and then.

``Snapshots`` and ``Checkpoints`` are for fully sharded jobs, whose ranks have no replica to copy from: a lost node
costs a few steps, and storage is for when more is lost than that. ``ReplicaCheckpoints`` is the storage of jobs whose
ranks are all the same.
"""

from holdfast_runtime.snapshots.checkpoints import Checkpoints, Outcome
from holdfast_runtime.snapshots.copies import Copy
from holdfast_runtime.snapshots.keeper import Keeper, bring, fetch
from holdfast_runtime.snapshots.layout import Block, Label, Layout, SnapshotError
from holdfast_runtime.snapshots.manifest import (
    COMPLETE,
    MANIFEST,
    Manifest,
    clear_incomplete,
    complete,
    complete_steps,
    facts,
    keep_newest,
    newest_complete,
    step_folder,
    verify,
)
from holdfast_runtime.snapshots.memory import Agree, Place, Snapshots, agree_by
from holdfast_runtime.snapshots.replicas import ReplicaCheckpoints
from holdfast_runtime.snapshots.shard import Shard, Stateful
from holdfast_runtime.snapshots.wire import Link, proof_of, proves

__all__ = [
    "COMPLETE",
    "MANIFEST",
    "Agree",
    "Block",
    "Checkpoints",
    "Copy",
    "Keeper",
    "Label",
    "Layout",
    "Link",
    "Manifest",
    "Outcome",
    "Place",
    "ReplicaCheckpoints",
    "Shard",
    "SnapshotError",
    "Snapshots",
    "Stateful",
    "agree_by",
    "bring",
    "clear_incomplete",
    "complete",
    "complete_steps",
    "facts",
    "fetch",
    "keep_newest",
    "newest_complete",
    "proof_of",
    "proves",
    "step_folder",
    "verify",
]
