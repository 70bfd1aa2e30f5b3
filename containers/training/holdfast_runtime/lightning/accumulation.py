"""One step over several batches of Lightning (``accumulate_grad_batches``), which gives them one by one."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from pytorch_lightning.loops.optimization.automatic import _AutomaticOptimization
from torch import Tensor

from holdfast_runtime.inprocess import Step

Closure = Callable[[], Any]
"""Forward and backward of a batch; may be called again."""


class AutomaticOptimization(_AutomaticOptimization):
    """Lightning's, whose batches without an update belong to the step of the next one that has it."""

    def __init__(self, trainer: Any, *, accumulate: Callable[[Closure], None]) -> None:
        super().__init__(trainer)
        self._accumulate = accumulate

    def run(self, optimizer: torch.optim.Optimizer, batch_idx: int, kwargs: Any) -> dict[str, Any]:
        closure = self._make_closure(kwargs, optimizer, batch_idx)
        if self.trainer.fit_loop._should_accumulate():
            self._accumulate(closure)
        else:
            self._optimizer_step(batch_idx, closure)
        result = closure.consume_result()
        return result.asdict() if result.loss is not None else {}


class BatchesOfStep:
    """
    The batches of one step so far. All are done again where a rank is lost before its update.

    Args:
        attempts: Of the step, as often as it takes.
    """

    def __init__(self, attempts: Iterator[Step]) -> None:
        self._attempts = attempts
        self._closures: list[Closure] = []
        self._step: Step | None = None
        self._loss = 0.0

    def add(self, closure: Closure, *, update: Callable[[Step, float], None] | None = None) -> bool:
        """
        Do one more batch.

        Args:
            update: Ends the step, with the loss of all batches. Default: more of them follow.

        Returns:
            False if the step was committed by others, whose state is here now.
        """
        self._closures.append(closure)
        while True:
            before = self._step
            if before is None and not self._begin():
                return False
            step = self._step
            assert step is not None
            try:
                for each in self._closures if before is None else [closure]:
                    self._do(each, step, is_last=update is not None and each is closure)
                if update is not None:
                    update(step, self._loss)
            except BaseException as error:
                self._step = None
                if not step.__exit__(type(error), error, error.__traceback__):
                    raise
                if step.done:
                    return False
                continue
            if update is not None:
                step.__exit__(None, None, None)
            return True

    def _begin(self) -> bool:
        self._step, self._loss = next(self._attempts, None), 0.0
        if self._step is not None:
            self._step.__enter__()
        return self._step is not None

    def _do(self, closure: Closure, step: Step, *, is_last: bool) -> None:
        if is_last:
            result = closure()
        else:
            with step.accumulate():
                result = closure()
        self._loss += float(result.detach()) if isinstance(result, Tensor) else 0.0
