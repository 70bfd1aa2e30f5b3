"""
A training loop that survives the loss of other processes: its own process, model and optimizer stay.

``_run`` is what a script uses; ``_step`` is one update in two phases; ``_recovery`` is how a broken epoch becomes the
next one; ``_reducer`` adds up gradients; ``_group`` opens and closes process groups; ``_state`` is what training has.
"""

from holdfast_runtime.inprocess._errors import DivergenceError, StoppedError
from holdfast_runtime.inprocess._run import Run
from holdfast_runtime.inprocess._step import Step
from holdfast_runtime.inprocess._tiers import CheckpointTier

__all__ = ["CheckpointTier", "DivergenceError", "Run", "Step", "StoppedError"]
