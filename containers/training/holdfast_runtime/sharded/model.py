"""
A model that is divided among ranks: what of it has to follow when the groups are made again, and which part is whose.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from holdfast_runtime.groups import RecordedGroups, mesh_like, moved, private, recut


class Sharded:
    """
    The model of one rank.

    Made while the groups in which the script made it are there.

    Args:
        pipelines: Schedules of torch.distributed.pipelining that the script steps.
    """

    def __init__(self, model: nn.Module, recorded: RecordedGroups, *, pipelines: Sequence[Any] = ()) -> None:
        self.twins: tuple[int, ...] = ()
        """Ranks that have the same part of the state, once it is known."""
        self.some_have_twins = False
        """The same on all ranks."""
        self.has_large_values = False
        """Whether ranks have so many values of their own that no other one keeps them: then they are no twins."""
        self.recorded = recorded
        self._model = model
        self._pipelines = list(pipelines)
        self._group_names: list[list[str]] = []
        self.place = rank, size = dist.get_rank(), dist.get_world_size()
        """The rank whose part of the state is here, and of how many."""
        self.data_place = self._data_place(rank=rank, world_size=size)
        """Which part of a batch is this rank's, and of how many: ranks that divide a layer, or are stages of one
        pipeline, see the same samples."""
        self.holds = self._holds()
        """A digest of which part of the state this rank has, in coordinates of whole tensors."""

    @property
    def has_stages(self) -> bool:
        return bool(self._pipelines)

    def reshard(self) -> None:
        for module in self._model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def forget_step(self) -> None:
        """Have this rank's parts again, in whichever collective the step broke."""
        private.reset_fsdp(self._model)

    def leave(self) -> None:
        self.forget_step()
        names = [private.group_names_of(schedule) for schedule in self._pipelines]
        if any(any(each) for each in names):
            self._group_names = names
        private.forget_fsdp(self._model)
        for schedule in self._pipelines:
            private.forget_pipeline(schedule)

    def moved(self, rank: int) -> bool:
        """Have room for the part of another rank, of as many. False where that takes ``recut``."""
        if not moved(self._model, rank):
            return False
        self._placed(rank, self.place[1])
        return True

    def recut(self, optimizer: torch.optim.Optimizer) -> None:
        """Have the part of this rank in the groups that there are now, of another number of ranks; empty."""
        mesh = private.data_mesh(self._model)
        assert mesh is not None
        recut(self._model, optimizer, mesh_like(mesh))
        self._placed(dist.get_rank(), dist.get_world_size())

    def _placed(self, rank: int, size: int) -> None:
        self.place = rank, size
        self.data_place = self._data_place(rank=rank, world_size=size)
        self.holds = self._holds()

    def step_alone(self) -> bool:
        return all(private.step_alone(schedule) for schedule in self._pipelines)

    def renew(self) -> None:
        private.renew_fsdp(self._model)
        for schedule, names in zip(self._pipelines, self._group_names, strict=True):
            private.renew_pipeline(schedule, names)

    def _data_place(self, *, rank: int, world_size: int) -> tuple[int, int]:
        mesh = private.data_mesh(self._model)
        if mesh is not None:
            place, size = 0, 1
            for coordinate, length in zip(mesh.get_coordinate() or (), mesh.shape, strict=True):
                place, size = place * length + coordinate, size * length
            return place, size
        divided = bool(self._pipelines) or any(hasattr(p, "to_local") for p in self._model.parameters())
        return (0, 1) if divided else (rank, world_size)

    def _holds(self) -> str:
        stages = [stage.stage_index for schedule in self._pipelines for stage in private.stages_of(schedule)]
        parts: list[Any] = [stages]
        for name, parameter in self._model.named_parameters():
            parts.append([name, str(parameter.dtype), [*parameter.shape], _part(parameter)])
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _part(parameter: nn.Parameter) -> list[Any]:
    if not isinstance(parameter, DTensor):
        return []
    if summed := [placement for placement in parameter.placements if placement.is_partial()]:
        raise ValueError(f"state cannot be placed as {summed[0]!r}; it has to be replicated or cut along a dimension")
    shape, offsets = private.local_part(parameter)
    return [parameter.device_mesh.mesh.flatten().tolist(), [offsets, shape] if all(shape) else []]
