"""Refusal of a line of the old loop: a second update, by ``optimizer.step()`` of the program."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.errors import is_library
from holdfast_runtime.state import before_step

SCALER = str(Path("torch", "amp", "grad_scaler.py"))


class OneUpdate:
    """Guard of an optimizer, which ``step.update`` alone steps."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._is_open = False
        before_step(optimizer, lambda *_: self._refuse())

    @contextmanager
    def open(self) -> Iterator[None]:
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    def _refuse(self) -> None:
        """Raise UnsupportedError with the line of the program, unless it is the update of the step."""
        if self._is_open:
            return
        frame, scaled = sys._getframe(1), False
        while frame.f_back is not None and is_library(frame.f_code.co_filename):
            scaled |= frame.f_code.co_filename.endswith(SCALER)
            frame = frame.f_back
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        if scaled:
            raise UnsupportedError(
                f"{place} calls scaler.step(optimizer), and step.update() steps the optimizer: two updates in a step; "
                "put step.reduce(loss) and scaler.unscale_(optimizer) before step.update(), call "
                "optimizer.zero_grad() between them where the norm of all gradients is not finite, and delete "
                "scaler.step"
            )
        raise UnsupportedError(
            f"{place} calls optimizer.step(), and step.update(loss) steps the optimizer: two updates in a step; delete "
            "this line"
        )
