"""
The state of a job as boxes in the coordinates of whole tensors: who has what, what goes where, what may be lost.

One model for every layout: copies along a replicated dimension, shards of FSDP2, tensor parallelism, stages of a
pipeline and their combinations. Pure: no torch, clock or I/O, so the launcher plans with it as well as a rank does.
"""

from holdfast_common.placement import (
    BLOCKS,
    REACHES,
    Keepers,
    Reach,
    Spot,
    Survival,
    keepers,
    needs_snapshots,
    survival,
)
from holdfast_runtime.boxes.box import Box, remainder
from holdfast_runtime.boxes.holding import Holding, alike, covers, dissenters, missing, strata, twins
from holdfast_runtime.boxes.layout import Placement, Replicate, Shard, boxes_of, placements_of, slices_of
from holdfast_runtime.boxes.transfers import MissingBoxesError, Transfer, transfers

__all__ = [
    "BLOCKS",
    "REACHES",
    "Box",
    "Holding",
    "Keepers",
    "MissingBoxesError",
    "Placement",
    "Reach",
    "Replicate",
    "Shard",
    "Spot",
    "Survival",
    "Transfer",
    "alike",
    "boxes_of",
    "covers",
    "dissenters",
    "keepers",
    "missing",
    "needs_snapshots",
    "placements_of",
    "remainder",
    "slices_of",
    "strata",
    "survival",
    "transfers",
    "twins",
]
