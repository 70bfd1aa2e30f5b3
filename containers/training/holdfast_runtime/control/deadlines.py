"""
Deadlines of all waits of launcher and ranks, in seconds.

Each is longer than what it waits for, so that the innermost wait ends first and says what really happened.
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

VARIABLE = "HOLDFAST_DEADLINES"
OUT_OF_ORDER = ("frozen", "silence", "progress", "stop")
"""Each waits for something that waits for none of the others."""


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    beat: float = 0.5
    """Between two signs of life on an idle link."""
    heartbeat: float = 1.5
    """A launcher that is silent for so long is lost."""
    leave: float = 30.0
    """A rank that has not left by then is killed. Longer than the longest computation between collectives."""
    ready: float = 40.0
    """A proposer continues without the launchers that have not answered."""
    minority: float = 45.0
    """A launcher that reaches no majority stops."""
    view: float = 300.0
    """Without a view after so long the job stops. Time for a lost node to be replaced when there is no spare."""
    connect: float = 330.0
    """For the groups of a view to connect."""
    transfer: float = 360.0
    """For one rank's state to arrive."""
    start: float = 1800.0
    """For all launchers to find each other, and for processes to become ready at the start of the job."""
    frozen: float = 10.0
    """A process that is stopped (SIGSTOP) for so long is killed: a rank, a spare, the one that forks, a launcher."""
    silence: float = 120.0
    """
    The least time that a rank waits for the others of its step. Beyond it, ten of the longest steps; ``progress`` at
    most. Longer than what one rank may do alone between two steps, such as an evaluation on rank 0.
    """
    progress: float = 600.0
    """A rank without a message for so long is hung: all have to leave, and it is killed if it does not."""
    stop: float = 30.0
    """Between the request to end and the kill; as Slurm's KillWait and torchrun's --shutdown-timeout have it."""

    def __post_init__(self) -> None:
        names = [item.name for item in fields(self) if item.name not in OUT_OF_ORDER]
        for shorter, longer in itertools.pairwise(names):
            if not 0 < getattr(self, shorter) < getattr(self, longer):
                raise ValueError(
                    f"deadlines must be positive and grow in the order {' < '.join(names)}; "
                    f"got {shorter} {getattr(self, shorter)} and {longer} {getattr(self, longer)}"
                )
        if self.progress <= self.leave:
            raise ValueError(f"deadline progress must be longer than leave, {self.leave}; got {self.progress}")
        for name in OUT_OF_ORDER:
            if getattr(self, name) <= 0:
                raise ValueError(f"deadline {name} must be positive, got {getattr(self, name)}")

    @property
    def unended(self) -> float:
        return min(self.stop, (self.ready - self.leave) / 2)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_environment(environment: Mapping[str, str]) -> "Deadlines":
        return Deadlines(**json.loads(environment.get(VARIABLE, "{}")))
