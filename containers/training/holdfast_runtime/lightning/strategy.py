"""A strategy of Lightning that lives through the loss of other processes, in the midst of ``Trainer.fit``."""

import copy
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import StochasticWeightAveraging, WeightAveraging
from pytorch_lightning.strategies import SingleDeviceStrategy
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torchmetrics import Metric

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess import RECEIVED, CheckpointTier, Run, Step, unsupported_reported
from holdfast_runtime.inprocess import device as gpu_of_process
from holdfast_runtime.lightning.accumulation import AutomaticOptimization, BatchesOfStep
from holdfast_runtime.lightning.data import divide

_Schedules = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""State of the schedulers, and the values of the optimizer's groups."""


SETUP = object()
"""In place of a group: metrics give one, and Lightning's questions about lengths of loaders do not. A process that
takes over a rank asks those when it begins, without the others."""


class _Received:
    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read = read
        self.value: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        return self._read()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state


def _check(module: pl.LightningModule, callbacks: Iterable[pl.Callback], *, optimizers: int) -> None:
    if any(isinstance(callback, StochasticWeightAveraging) for callback in callbacks):
        raise UnsupportedError(
            "got the callback StochasticWeightAveraging, whose scheduler begins in the middle of the training and is "
            "missing in a process that takes over a rank; allowed: WeightAveraging and EMAWeightAveraging; use one "
            "of them, with a scheduler of the module"
        )
    automatic = module.automatic_optimization
    if optimizers != 1 or not automatic:
        raise UnsupportedError(
            f"got {optimizers} optimizers, automatic_optimization={automatic}; allowed: one, and True. Put "
            "all parameters into one optimizer and train one part of them in each step, as parameters without a "
            "gradient are left alone: with Lightning, or in a loop over holdfast_runtime.Run"
        )


def _has_state(callback: pl.Callback) -> bool:
    return type(callback).state_dict is not pl.Callback.state_dict


def _averages(trainer: pl.Trainer) -> list[WeightAveraging]:
    found = [each for each in trainer.callbacks if isinstance(each, WeightAveraging)]  # type: ignore[attr-defined]
    return [average for average in found if average._average_model is not None]


class HoldfastStrategy(SingleDeviceStrategy):
    """
    Data-parallel ``fit`` with one process per rank, started by ``holdfast-run``; alone without it.

    When a process dies, the others do the step again with the spare that took its place: it begins at the same batch.
    Lightning itself is told that it is alone (``trainer.world_size`` is 1), since its own collectives cannot be left.
    Values that are logged with ``sync_dist``, and decisions of callbacks such as ``EarlyStopping``, are those of all
    ranks. A rank that is lost in one of them outside of ``training_step``, as in a validation, ends the job.

    Args:
        device: Of this process. Default: ``holdfast_runtime.device()``.
        checkpoint: As for ``Run``. Default: none.
        options: Further arguments of ``Run``.

    Raises:
        UnsupportedError: the module has several optimizers, or optimizes by hand.
        StoppedError: the launcher has ended the job.
    """

    strategy_name = "holdfast"

    def __init__(
        self, device: torch.device | str | None = None, *, checkpoint: CheckpointTier | None = None, **options: Any
    ) -> None:
        super().__init__(device=device or gpu_of_process())
        self._run: Run | None = None
        self._options = {**options, "checkpoint": checkpoint}
        self._in_step = False
        self._batches: BatchesOfStep | None = None
        """Of the step that runs."""
        self._loops: dict[str, Any] | None = None
        """Lightning's counters in front of the first of several batches: a newcomer does them all."""
        self._number: int | None = None
        """Updates that were finished when Lightning began with the batch that it is at; None between two batches."""
        self._sharded = False
        """Whether clipping needs other ranks, and comes before the vote; gradients are whole after backward then."""

    @property
    def run(self) -> Run:
        """The resilient training below; there from the strategy's setup on."""
        if self._run is None:
            raise RuntimeError("the strategy has no run before its setup; use it in hooks of the training")
        return self._run

    @property
    def is_global_zero(self) -> bool:
        return self._run.is_logger if self._run is not None else int(os.environ.get("RANK") or 0) == 0

    @property
    def is_distributed(self) -> bool:
        """True if values that are logged with ``sync_dist`` are reduced."""
        return self._run is not None and self._run.world_size > 1

    def setup(self, trainer: pl.Trainer) -> None:
        """Wait for a rank; a newcomer goes on at the batch that the others are at."""
        super().setup(trainer)
        if trainer.state.fn != TrainerFn.FITTING or self._run is not None:
            return
        module = self.lightning_module
        assert module is not None
        with unsupported_reported():
            _check(module, trainer.callbacks, optimizers=len(self.optimizers))  # type: ignore[attr-defined]
        fit = trainer.fit_loop
        fit.epoch_loop.automatic_optimization = AutomaticOptimization(trainer, accumulate=self._accumulate)
        loops = _Received(lambda: {"loops": self._loops or fit.state_dict(), "updated": self._has_updated()})
        schedulers = {f"scheduler{i}": config.scheduler for i, config in enumerate(self.lr_scheduler_configs)}
        # Lightning makes this when a metric is logged, with addresses that are of this process alone.
        metrics = {id(part): name for name, part in module.named_modules() if isinstance(part, Metric)}
        module._metric_attributes = metrics or None
        # Lightning counts its batches, and would count the one of a trial too.
        options = {**self._options, "warm_up": False}
        callbacks: list[pl.Callback] = trainer.callbacks  # type: ignore[attr-defined]
        positions = [(each, _Received(each.state_dict)) for each in callbacks if _has_state(each)]
        state: dict[str, Any] = {RECEIVED + "loops": loops, **schedulers}
        for number, (callback, received) in enumerate(positions):
            state[f"{RECEIVED}callback {number} {type(callback).__name__}"] = received
        for number, average in enumerate(_averages(trainer)):
            state[f"average {number}"] = average._average_model
        self._run = Run(module, self.optimizers[0], state=state, **options)
        trainer._accelerator_connector.use_distributed_sampler = False  # the strategy divides the data
        self._sharded = any(hasattr(parameter, "to_local") for parameter in module.parameters())
        self.global_rank = self._run.rank
        self._run.take_over()
        if loops.value is not None and self._run.step:
            trainer.fit_loop.load_state_dict(loops.value["loops"])
            for callback, received in positions:
                if received.value is not None:
                    callback.load_state_dict(received.value)
            if loops.value["updated"]:
                self._pass_batch(trainer)

    def process_dataloader(self, dataloader: object) -> object:
        """This rank's part of it."""
        if self._run is None:
            return dataloader
        loop = self.lightning_module.trainer.fit_loop if self.lightning_module else None
        return divide(
            dataloader,
            rank=self._run.data_rank,
            world_size=self._run.data_size,
            seed=self._run.seed & 0x7FFF_FFFF,
            position=lambda: (
                (loop.trainer.current_epoch, loop.epoch_loop.batch_progress.current.completed + self._has_updated())
                if loop is not None
                else (0, 0)
            ),
        )

    def optimizer_step(
        self,
        optimizer: torch.optim.Optimizer,
        closure: Callable[[], Any],
        model: Any = None,  # noqa: ARG002 - the signature is Lightning's
        **kwargs: Any,  # noqa: ARG002
    ) -> Any:
        """One update, again until it is finished; ``closure`` does forward and backward of the newest batch."""
        before = self._schedules()
        results: list[Any] = []

        def update(step: Step, loss: float) -> None:
            # A step of several batches began in another hook, whose name it has again where it is repeated.
            self.lightning_module._current_fx_name = "optimizer_step"  # type: ignore[union-attr]
            if not self._sharded:
                step.reduce(loss)
            self.precision_plugin._after_closure(self.lightning_module, optimizer)  # type: ignore[arg-type]
            step.update(loss)

        batches, number = self._begun()
        try:
            updated = batches.add(self._in(closure, results), update=update)
            self._loops = None
            if updated:
                # What Lightning does next is done again by a process that has the state of this moment.
                self.run.end_step()
                return results[-1]
        finally:
            self._number = self._batches = self._loops = None
        if self.run.step != number + 1:
            raise RuntimeError(f"training went from step {number} to {self.run.step}; Lightning cannot follow")
        # A peer's state has replaced that of this process: with the schedule and the averages after the step, which
        # Lightning does next.
        self._put_back(before)
        trainer = self.lightning_module.trainer  # type: ignore[union-attr]
        for average in _averages(trainer):
            average._latest_update_step = trainer.global_step + 1
        return results[-1]

    def _accumulate(self, closure: Callable[[], Any]) -> None:
        batches, number = self._begun(of_several=True)
        if not batches.add(self._in(closure, [])):
            raise RuntimeError(f"step {number} has ended before its last batch; Lightning cannot follow")

    def _begun(self, *, of_several: bool = False) -> tuple[BatchesOfStep, int]:
        """Return the batches of the step that runs, and its number."""
        if self._batches is None or self._number is None:
            self._number = self.run.step
            self._batches = BatchesOfStep(self.run.attempts(self._number))
            assert self.lightning_module is not None
            fit = self.lightning_module.trainer.fit_loop
            self._loops = copy.deepcopy(fit.state_dict()) if of_several else None
        return self._batches, self._number

    def _in(self, closure: Callable[[], Any], results: list[Any]) -> Callable[[], Any]:
        def inside() -> Any:
            self._in_step = True
            results.append(closure())
            self._in_step = False
            return results[-1]

        return inside

    def reduce(self, tensor: Any, group: Any = SETUP, reduce_op: Any = "mean") -> Any:
        """The mean or the sum over ranks; of what Lightning asks while it sets up a loop, the value of this rank."""
        if self._run is None or not isinstance(tensor, Tensor) or (group is SETUP and not self._in_step):
            return tensor
        kind = str(reduce_op).lower().rpartition(".")[2]
        if kind not in ("mean", "avg", "sum"):
            raise UnsupportedError(f'reduce_fx is {kind}; allowed with sync_dist=True: "mean" and "sum"')
        mean = self._run.all_reduce_mean(tensor)
        return mean * self._run.world_size if kind == "sum" else mean

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:  # noqa: A002, FBT001, FBT002 - Lightning's
        """Decide on all ranks alike: if all ranks do so, or if any does."""
        if self._run is None:
            return decision
        share = float(self._run.all_reduce_mean(torch.tensor(float(decision))))
        return share == 1.0 if all else share > 0.0

    def teardown(self) -> None:
        """After a training that has ended, tell the launcher; not after an error."""
        trainer = self.lightning_module.trainer if self.lightning_module is not None else None
        if self._run is not None and trainer is not None and not trainer.interrupted:
            while not self._run.finish():
                pass
        super().teardown()

    def _has_updated(self) -> bool:
        return self._number is not None and self.run.step > self._number

    def _pass_batch(self, trainer: pl.Trainer) -> None:
        loop = trainer.fit_loop.epoch_loop
        loop.automatic_optimization.optim_progress.optimizer.step.increment_completed()
        loop.batch_progress.increment_processed()
        loop.update_lr_schedulers("step", update_plateau_schedulers=False)
        if loop.batch_progress.is_last_batch:
            loop.update_lr_schedulers("epoch", update_plateau_schedulers=False)
        for average in _averages(trainer):
            average.on_train_batch_end(trainer, trainer.lightning_module, None, None, loop.batch_idx)
        loop.batch_progress.increment_completed()

    def _schedules(self) -> _Schedules:
        groups = [{key: value for key, value in group.items() if key != "params"} for group in self._groups()]
        return copy.deepcopy([config.scheduler.state_dict() for config in self.lr_scheduler_configs]), groups

    def _put_back(self, before: _Schedules) -> None:
        for config, state in zip(self.lr_scheduler_configs, before[0], strict=True):
            config.scheduler.load_state_dict(state)
        for group, values in zip(self._groups(), before[1], strict=True):
            group.update(values)

    def _groups(self) -> list[dict[str, Any]]:
        return self.optimizers[0].param_groups
