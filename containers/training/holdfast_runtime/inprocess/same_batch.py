"""Detection of a repeated step that has other data than before, as from an iterator of the program."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from holdfast_runtime.inprocess.errors import DivergenceError
from holdfast_runtime.state import leaves

NUMBERS = 256
"""Of each tensor that are compared, about."""
SMALL = 1 << 16
"""Elements of a tensor that may be copied for it."""
NEAR, NEAR_ON_GPU = 1e-5, 1e-2
"""Relative differences of equal data: some kernels of a GPU do not give the same bits twice."""
INSTEAD = (
    "a repeated step needs the same batch, on this rank and on one that takes over a rank: make it a function of "
    "step.number and run.data_rank, as holdfast_runtime.data.ByStep does of a loader, and draw from no generator that "
    "goes on by itself"
)


class SameBatch:
    """
    Samples of what the model got first in the newest step, and the rank's loss of it.

    Args:
        near: Relative difference of equal data. Default: that of a CPU
    """

    def __init__(self, *, near: float = NEAR) -> None:
        self._near = near
        self._step: tuple[int, ...] = ()
        self._again = self._seen = False
        self._inputs: list[Tensor] | None = None
        self._loss: float | None = None

    def begin(self, number: int, place: tuple[int, int]) -> None:
        """
        Begin a step.

        Args:
            place: The rank's part of the batch, and how many there are.
        """
        step = (number, *place)
        self._again, self._step, self._seen = step == self._step, step, False
        if not self._again:
            self._inputs = self._loss = None

    def see(self, given: Iterable[Any], named: Mapping[str, Any]) -> None:
        """Note or compare the first inputs of the model in this step. Raises DivergenceError."""
        if self._seen or torch.compiler.is_compiling():
            return
        self._seen = True
        now = [part for _, value in leaves([*given, *named.values()]) if (part := _sample(value)) is not None]
        before, self._inputs = self._inputs, now
        if self._again and before is not None and not (len(before) == len(now) and all(map(self._alike, before, now))):
            raise DivergenceError(f"step {self._step[0]} is repeated, and its model has other inputs: {INSTEAD}")

    def note_loss(self, loss: float) -> None:
        """Note or compare the loss of this rank's batch. Raises DivergenceError."""
        before, self._loss = self._loss, loss
        if self._again and before is not None and math.isfinite(before):
            if math.isfinite(loss) and abs(loss - before) <= self._near * max(abs(before), abs(loss)):
                return
            raise DivergenceError(
                f"step {self._step[0]} is repeated, and this rank's loss is {loss:g}, and was {before:g}: {INSTEAD}"
            )

    def _alike(self, before: Tensor, now: Tensor) -> bool:
        if before.shape != now.shape or before.dtype != now.dtype:
            return False
        if not before.is_floating_point():
            return torch.equal(before, now)
        largest = float(before.abs().nan_to_num(0.0, 0.0, 0.0).max())
        return torch.allclose(before, now, rtol=self._near, atol=self._near * largest, equal_nan=True)


def _sample(value: object) -> Tensor | None:
    if type(value) is not Tensor or not value.numel() or value.is_meta:
        return None
    tensor = value.detach()
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    if not tensor.is_contiguous() and tensor.numel() > SMALL:
        return None
    return tensor.reshape(-1)[:: max(1, tensor.numel() // NUMBERS)].clone()
