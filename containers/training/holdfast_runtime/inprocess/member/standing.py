"""State of this rank."""

from dataclasses import dataclass

from holdfast_common.placement import Reach
from holdfast_runtime.elastic import Rounds
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.tiers import CheckpointTier
from holdfast_runtime.membership import State
from holdfast_runtime.sharded import JobCheckpoints, JobSnapshots, Sharded
from holdfast_runtime.snapshots import Checkpoints


@dataclass(kw_only=True)
class Standing:
    generation: int = 0
    rank: int = -1
    world_size: int = 0
    lost_steps: int = 0
    """Finished updates that are done again since the last recovery."""
    committed_step: int = 0
    """Updates that are finished."""
    validity: State = "none"
    """Of the state of that step."""
    recovered: bool = False
    """Whether some process of the job has taken its state from another one, or another rank was lost."""
    prepared: bool = False
    """Whether this process has all that the update after committed_step takes, and can do it alone."""
    asked: int = 0
    """Updates of the longest loop that any rank had asked for when the generation began."""
    gives: bool = False
    """Whether another process has the rank of this one."""
    built: int = -1
    """The rank that it makes its model for, or has, while it has none; -1 for any other process."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Model, optimizer and other state of the script."""

    state: TrainingState
    tier: CheckpointTier | Checkpoints | None
    """Default: there is no state but that of processes."""
    sharded: Sharded | None = None
    kept: JobSnapshots | None = None
    stored: JobCheckpoints | None = None
    elastic: bool = False
    """Whether the number of ranks may change."""
    rounds: Rounds | None = None
    """Logical ranks of an elastic job whose bits do not depend on its size."""
    moves: bool = False
    """Whether what is made for one rank can become another's in place: the script keeps nothing of its rank, all have
    the same groups, and rows of all parameters."""
    warm_up: bool = False
    """Whether a spare of replicas does an update alone before it has a rank."""
    survive: Reach = "nothing"
    """What the script asks to be possible to lose."""
