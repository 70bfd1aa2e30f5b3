"""The sharded checkpoints of a run, for when no process has the state any more."""

from collections.abc import Callable
from pathlib import Path

import torch.distributed as dist

from holdfast_runtime.groups import private
from holdfast_runtime.snapshots import Agree, Checkpoints, Shard


class JobCheckpoints:
    """
    Checkpoints, in a group of their own that comes back as all others do.

    Made by every rank at the same place among its groups.

    Args:
        shard: The state of this rank, asked for when a generation begins.
    """

    def __init__(self, checkpoints: Checkpoints, shard: Callable[[], Shard]) -> None:
        self._checkpoints = checkpoints
        self._shard = shard
        self._group = private.name_of(dist.new_group(backend="gloo", group_desc=private.OF_CHECKPOINTS))

    @property
    def folder(self) -> Path:
        return self._checkpoints.folder

    def join(self, *, agree: Agree) -> None:
        """Begin a generation; the groups are there. Raises SnapshotError for a folder of another job."""
        self._checkpoints.join(self._shard(), group=private.group_of(self._group), agree=agree)

    def leave(self) -> None:
        self._checkpoints.leave()

    def load(self, step: int) -> None:
        """Put the state of a step in, on all ranks. Raises SnapshotError when it is not there or damaged."""
        self._checkpoints.load(step)

    def save(self, step: int) -> None:
        self._checkpoints.save(step)

    def wait(self) -> None:
        self._checkpoints.wait()
