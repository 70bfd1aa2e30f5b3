"""
A training loop that survives the loss of other processes: its own process, model and optimizer stay.

``run`` is what a script uses, and ``step`` is one update in two phases; ``update`` is what a step does to the training.
``member`` leads this process out of a broken generation and into the next one; ``reducer`` adds up gradients; ``group``
opens and closes process groups; ``state`` is what training has.
"""

from holdfast_runtime.inprocess.beginning import (
    check_graphs,
    chosen_backend,
    init_process_group,
    unsupported_reported,
)
from holdfast_runtime.inprocess.comparison import Comparison, digest_of_facts
from holdfast_runtime.inprocess.devices import Claims, deterministic, device, probe
from holdfast_runtime.inprocess.digest import digest_of, weighted_sum
from holdfast_runtime.inprocess.elastic_event import elastic_event_detected
from holdfast_runtime.inprocess.errors import BrokenError, DivergenceError, StoppedError
from holdfast_runtime.inprocess.leaving import behind
from holdfast_runtime.inprocess.member import Agreement, Member, Standing
from holdfast_runtime.inprocess.reduction import BUCKET_BYTES, Reducer, layout
from holdfast_runtime.inprocess.reduction.vote import LENGTH, Outcome, cast, count
from holdfast_runtime.inprocess.run import Run
from holdfast_runtime.inprocess.same_batch import SameBatch
from holdfast_runtime.inprocess.state import RECEIVED, TrainingState
from holdfast_runtime.inprocess.step import Step
from holdfast_runtime.inprocess.tensors import packed_values
from holdfast_runtime.inprocess.tiers import CheckpointTier
from holdfast_runtime.inprocess.update import Updates
from holdfast_runtime.snapshots import Stateful

__all__ = [
    "BUCKET_BYTES",
    "LENGTH",
    "RECEIVED",
    "Agreement",
    "BrokenError",
    "CheckpointTier",
    "Claims",
    "Comparison",
    "DivergenceError",
    "Member",
    "Outcome",
    "Reducer",
    "Run",
    "SameBatch",
    "Standing",
    "Stateful",
    "Step",
    "StoppedError",
    "TrainingState",
    "Updates",
    "behind",
    "cast",
    "check_graphs",
    "chosen_backend",
    "count",
    "deterministic",
    "device",
    "digest_of",
    "digest_of_facts",
    "elastic_event_detected",
    "init_process_group",
    "layout",
    "packed_values",
    "probe",
    "unsupported_reported",
    "weighted_sum",
]
