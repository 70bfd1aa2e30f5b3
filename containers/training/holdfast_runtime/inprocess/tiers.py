"""Storage of state, for when no process has it."""

from typing import Any, Protocol


class CheckpointTier(Protocol):
    """The last tier: storage. What ``tree`` holds is defined by ``TrainingState.tree``."""

    def newest_step(self) -> int:
        """The step of the newest complete checkpoint; -1 without one."""
        ...

    def save(self, step: int, tree: dict[str, Any], *, rank: int, world_size: int) -> None: ...

    def load(self, step: int, *, rank: int) -> dict[str, Any]:
        """The tree of a checkpoint. Raises OSError or ValueError for one that is not whole."""
        ...
