"""
The state of a job as boxes in the coordinates of whole tensors: who has what, what goes where.

One model for every layout: copies along a replicated dimension, shards of FSDP2, tensor parallelism, stages of a
pipeline and their combinations. Pure: no torch, clock or I/O, so the launcher plans with it as well as a rank does.
"""

from holdfast_runtime.boxes.box import Box, remainder
from holdfast_runtime.boxes.holding import Holding, alike, covers, dissenters, missing, strata, twins
from holdfast_runtime.boxes.layout import Placement, Replicate, Shard, boxes_of, placements_of, slices_of
from holdfast_runtime.boxes.transfers import MissingBoxesError, Transfer, transfers

__all__ = [
    "Box",
    "Holding",
    "MissingBoxesError",
    "Placement",
    "Replicate",
    "Shard",
    "Transfer",
    "alike",
    "boxes_of",
    "covers",
    "dissenters",
    "missing",
    "placements_of",
    "remainder",
    "slices_of",
    "strata",
    "transfers",
    "twins",
]
