"""``Run`` and its steps, for training scripts."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from holdfast_runtime.elastic import Rounds, elastic_asked
from holdfast_runtime.inprocess.beginning import begun, check_added, chosen_backend, unsupported_reported
from holdfast_runtime.inprocess.elastic_event import answers
from holdfast_runtime.inprocess.errors import BrokenError
from holdfast_runtime.inprocess.member import Member, Training
from holdfast_runtime.inprocess.reduction import BUCKET_BYTES
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.step import Step
from holdfast_runtime.inprocess.tensors import seed_generators
from holdfast_runtime.inprocess.tiers import CheckpointTier
from holdfast_runtime.inprocess.update import Updates
from holdfast_runtime.sharded import NoCollectives
from holdfast_runtime.snapshots import Checkpoints, Stateful
from holdfast_runtime.state import AnyGenerator

REPEATED = "only a step and run.steps(total, between=...) are repeated: call all_reduce_mean in one of them"


class Run:
    """
    A data-parallel training that goes on when processes die.

    Making one waits until this process has a rank; a spare waits here until it is needed. Without a launcher it
    trains alone. All ranks begin with the parameters of rank 0. In each step, random numbers (of torch, Python and
    NumPy) begin anew from the seed of rank 0, the step and the rank, so that another process can do the step again.
    Buffers that a step changes, such as the statistics of a BatchNorm, are those of rank 0 after it.

    Args:
        model: On its device; not wrapped in DistributedDataParallel.
        optimizer: Of torch, over the model's parameters.
        scheduler: Stepped after each update, here and nowhere else. Default: none.
        state: What else belongs to the state, by name: objects with ``state_dict`` and ``load_state_dict``, and random
            generators. Each is copied to newcomers and put back for a step that is done again. Default: nothing.
        after_update: Called with the number of finished updates after each update, as part of it: exactly once for each
            committed step on all ranks. For averages, clamps and schedules; it needs no other rank. Default: nothing.
        checkpoint: Where state comes from when no process has it: ``Checkpoints`` for a sharded model, else
            ``ReplicaCheckpoints``. Default: nowhere, the job ends with a reason.
        checkpoint_every: Updates between two checkpoints. Default: 0, none is made here.
        digest_every: Updates between two comparisons of all replicas' parameters. Default: 50.
        bucket_bytes: Of gradients that are reduced together. Default: 25 MiB.
        backend: Of torch.distributed. Default: nccl for a model on GPUs, else gloo.
        pipeline: Schedules of torch.distributed.pipelining that the script steps. Default: none.
        snapshot_every: Updates between two snapshots of each rank's part of a sharded model in another node's memory,
            or "never". Default: none where each part is on two nodes; else as often as 3 % of the steps' time as CPU
            allows.
        survive: What must be possible to lose of a sharded job, any one of its kind: "process", "node" or "rack".
            Where copies are too few or too close for it at the start, the job is refused. Default: nothing is asked.
        warm_up: Whether a spare of a sharded job that has made its model does a step alone, before it has a rank, up to
            ``step.update``: nothing of it counts. A pipeline's does where its stages were given ``input_args`` and
            ``output_args``. A spare of replicas does an update alone, with gradients of 0. Default: it does.
        elastic: For a job whose number of ranks changes: a number of logical ranks, with which every bit is the same
            at any size, or "throughput", where the batch grows with the job. Its script keeps nothing of the rank that
            it began with, so that a spare can have the model of any rank. Default: the job keeps its size.

    Raises:
        StoppedError: the launcher has ended the job.
        ValueError: ``optimizer``, ``scheduler`` or ``state`` has something that cannot be sent to another process.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: Stateful | None = None,
        state: Mapping[str, Stateful | AnyGenerator] | None = None,
        after_update: Callable[[int], object] | None = None,
        checkpoint: CheckpointTier | Checkpoints | None = None,
        checkpoint_every: int = 0,
        digest_every: int = 50,
        bucket_bytes: int = BUCKET_BYTES,
        backend: str | None = None,
        pipeline: Any = None,
        snapshot_every: int | str | None = None,
        survive: str | None = None,
        warm_up: bool = True,
        elastic: int | str | None = None,
    ) -> None:
        if digest_every < 1:
            raise ValueError(f"digest_every is {digest_every}; allowed: 1 or more")
        check_added(state or {})
        self._state = TrainingState(model, optimizer, scheduler=scheduler, added=state or {})
        self._checkpoint = checkpoint
        self._checkpoint_every = checkpoint_every
        self._alone = ExitStack()
        """Around the code between two loops where this process runs it without the others."""
        self._skips_loop = False
        """True if the newest loop had ended before this process received its state."""
        logical = elastic_asked(elastic, sizes=())
        self._member = begun(
            self._state,
            pipeline=pipeline,
            snapshot_every=snapshot_every,
            survive=survive,
            tier=checkpoint,
            elastic=elastic,
        )
        if self._member is None and "HOLDFAST_CONTROL_FD" in os.environ:
            if isinstance(checkpoint, Checkpoints):
                raise ValueError(
                    "checkpoint is a Checkpoints, whose ranks each write a part; every rank of this job has all of the "
                    "state: give ReplicaCheckpoints"
                )
            with unsupported_reported():
                backend = chosen_backend(backend, on_gpu=self._state.on_gpu, sharded=False)
            self._member = Member(
                backend=backend,
                training=Training(state=self._state, tier=checkpoint, moves=True, warm_up=warm_up),
            )
        answers(self._member)
        self._updates = Updates(
            self._state,
            self._member,
            digest_every=digest_every,
            bucket_bytes=bucket_bytes,
            committed=self._save,
            after_update=after_update,
            rounds=Rounds(logical) if self._member is None and logical else None,
        )
        if self._member is not None:
            if not (warm_up and self._updates.can_try):
                self._member.take_rank()
        elif isinstance(checkpoint, Checkpoints):
            raise ValueError(
                "Checkpoints are of a sharded model under holdfast-run; give ReplicaCheckpoints, or nothing"
            )
        elif checkpoint is not None and checkpoint.newest_step() >= 0:
            self._updates.alone_step = checkpoint.newest_step()
            self._state.load_tree(checkpoint.load(self._updates.alone_step, rank=0))

    @property
    def rank(self) -> int:
        """Of this process; it never changes while the process has one."""
        return self._member.own.rank if self._member else 0

    @property
    def data_rank(self) -> int:
        """This rank's part of each batch; the same for ranks that divide a layer, or are one pipeline."""
        return self._updates.data_place[0]

    @property
    def data_size(self) -> int:
        """Parts of each batch."""
        return self._updates.data_place[1]

    @property
    def world_size(self) -> int:
        return self._member.own.world_size if self._member else 1

    @property
    def generation(self) -> int:
        """Of the group of ranks: how often it was made. 0 without a launcher."""
        return self._member.own.generation if self._member else 0

    @property
    def step(self) -> int:
        """Updates that are finished."""
        return self._updates.finished

    @property
    def seed(self) -> int:
        """Of all random numbers, the same on all ranks; 63 bits."""
        return self._state.seed

    @property
    def is_logger(self) -> bool:
        """
        True if this rank is the one that prints.

        False behind a loop that ended before this process had a state: the job has printed what stands there.
        """
        return self.rank == 0 and not self._skips_loop

    @property
    def lost_steps(self) -> int:
        """Finished updates that are done again since the last recovery; more than 0 only where the job allows it."""
        return self._member.own.lost_steps if self._member else 0

    def steps(self, total: int, *, between: Callable[[int], object] | None = None) -> Iterator[Step]:
        """
        Steps until ``total`` updates are finished, from the one that is next, whatever happens in between.

        Args:
            between: Called with the number of finished updates after each update, on all ranks together: for work that
                needs other ranks, such as a validation or a gathered save. If a rank is lost in it, or before the next
                update, all ranks call it again, the process that takes over the rank as well, with the state of before.
                Default: nothing.
        """
        if self._member is not None:
            self._member.begin_loop(total)
            self._alone.close()
        self._skips_loop = self.step > total
        self._updates.begin_loop()
        self._updates.between.function = between
        try:
            while True:
                while self.step < total:
                    yield from self.attempts(self.step)
                if self.finish():
                    break
        finally:
            self._state.end_loop(min(total, self.step))
        # What a script draws between two epochs is the same in a process that was not there.
        seed_generators(self.seed, total)
        if self._is_behind:
            self._alone.enter_context(NoCollectives(self._without_peers))

    def attempts(self, number: int) -> Iterator[Step]:
        """The step that follows ``number`` updates, as often as it takes; for loops that count steps themselves."""
        while self.step == number:
            if self._updates.may_begin():
                yield Step(self._updates, number, trial=self._updates.trial)

    def take_over(self) -> None:
        """Put in what was received, now and not when the first step begins: for a framework that changes it after."""
        self._state.reach_boundary()

    def end_step(self) -> None:
        """Take the snapshot and the checkpoint that are due now, and not when the next step can begin."""
        self._updates.end_step()

    @property
    def _is_behind(self) -> bool:
        return self._member is not None and self._member.is_behind

    def _without_peers(self, function: object) -> str:
        return (
            f"{function} stands between two calls of run.steps, and this process, which has taken over a rank, runs "
            "it without the others, which have done so; give it to run.steps(total, between=...), or use "
            "run.all_reduce_mean"
        )

    def finish(self) -> bool:
        """
        After the last step of a loop that uses ``attempts``: wait for the others.

        Returns:
            Whether all have finished. Else somebody was lost and ``step`` says where training goes on.
        """
        if self._is_behind:
            return True
        if not self._updates.may_end() or (self._member is not None and not self._member.finish()):
            return False
        self._state.end_loop(self.step)
        self._state.reach_boundary()
        if self._checkpoint is not None and self._checkpoint_every:
            self._save(last=True)
        return True

    def all_reduce_mean(self, value: Tensor) -> Tensor:
        """
        Return the mean of a tensor over all ranks. Inside a step: it is repeated with the step.

        It returns the value of this rank behind a step that was left, and, in a process that has taken over a rank, in
        front of the loop that the others are in.
        """
        if self.world_size == 1 or self._is_behind or (self._member is not None and self._member.has_left):
            return value
        try:
            if self._member is not None:
                self._member.peers.check()
            return self._updates.mean(value)
        except BrokenError as error:
            raise BrokenError(f"{error}; {REPEATED}") from error

    def _save(self, *, last: bool = False) -> None:
        every = self._checkpoint_every
        if self._checkpoint is None or not every or not (last or self.step % every == 0):
            return
        if not last:
            self._updates.compare()
        if isinstance(self._checkpoint, Checkpoints):
            assert self._member is not None
            self._member.taking.save_stored(last=last)
        else:
            self._checkpoint.save(self.step, self._state.tree(), rank=self.rank, world_size=self.world_size)
