"""What a training script uses: ``Run`` and its steps."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from holdfast_runtime.inprocess import vote
from holdfast_runtime.inprocess.errors import DivergenceError, StoppedError, of_peers
from holdfast_runtime.inprocess.member import PEERS, Member
from holdfast_runtime.inprocess.reducer import BUCKET_BYTES, Reducer
from holdfast_runtime.inprocess.state import Stateful, TrainingState
from holdfast_runtime.inprocess.step import Step
from holdfast_runtime.inprocess.tiers import CheckpointTier


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
        scheduler: Stepped after each update. Default: none.
        state: What else belongs to the state, by name: each is copied to newcomers and put back for a step that is
            done again. Default: nothing.
        checkpoint: Where state comes from when no process has it. Default: nowhere, the job ends with a reason.
        checkpoint_every: Updates between two checkpoints. Default: 0, none is made here.
        digest_every: Updates between two comparisons of all replicas' parameters. Default: 50.
        bucket_bytes: Of gradients that are reduced together. Default: 25 MiB.
        backend: Of torch.distributed. Default: nccl for a model on GPUs, else gloo.

    Raises:
        StoppedError: the launcher has ended the job.
        ValueError: ``state`` has something that cannot be sent to another process.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: Stateful | None = None,
        state: Mapping[str, Stateful] | None = None,
        checkpoint: CheckpointTier | None = None,
        checkpoint_every: int = 0,
        digest_every: int = 50,
        bucket_bytes: int = BUCKET_BYTES,
        backend: str | None = None,
    ) -> None:
        if digest_every < 1:
            raise ValueError(f"digest_every is {digest_every}; allowed: 1 or more")
        self._state = TrainingState(model, optimizer, scheduler=scheduler, added=state or {})
        self._scheduler = scheduler
        self._checkpoint = checkpoint
        self._checkpoint_every = checkpoint_every
        self._digest_every = digest_every
        self._alone_step = 0
        on_gpu = any(parameter.is_cuda for parameter in model.parameters())
        self._member = (
            Member(self._state, backend=backend or ("nccl" if on_gpu else "gloo"), tier=checkpoint)
            if "HOLDFAST_CONTROL_FD" in os.environ
            else None
        )
        self._reducer = Reducer(
            list(model.parameters()),
            tail=vote.LENGTH,
            bucket_bytes=bucket_bytes,
            on_bucket=self._bucket,
            wait=self._wait_for,
        )
        self._in_step = False
        """Between a step's beginning and its update: where the end of the epoch is an error that the step takes."""
        self._parameters: list[nn.Parameter] | None = list(model.parameters())
        """Until the first step has compared them with the model's."""
        if self._member is not None:
            faults = self._member.faults
            model.register_forward_pre_hook(lambda *_: self._point("forward"))
            # No look at the epoch: an update needs nobody, and leaving it half done would lose what it was made of.
            optimizer.register_step_pre_hook(lambda *_: faults.point("update"))
            if not self._member.join():
                raise StoppedError("the job has ended and this spare was not needed", 0)
        elif checkpoint is not None and checkpoint.newest_step() >= 0:
            self._alone_step = checkpoint.newest_step()
            self._state.load_tree(checkpoint.load(self._alone_step, rank=0))

    @property
    def rank(self) -> int:
        """Of this process; it never changes while the process has one."""
        return self._member.rank if self._member else 0

    @property
    def world_size(self) -> int:
        return self._member.world_size if self._member else 1

    @property
    def epoch(self) -> int:
        """Of the view: how often the group of ranks was made. 0 without a launcher."""
        return self._member.epoch if self._member else 0

    @property
    def step(self) -> int:
        """Updates that are finished."""
        return self._member.committed_step if self._member else self._alone_step

    @property
    def seed(self) -> int:
        """Of all random numbers, the same on all ranks; 63 bits."""
        return self._state.seed

    @property
    def is_logger(self) -> bool:
        """Whether this rank is the one that prints."""
        return self.rank == 0

    @property
    def lost_steps(self) -> int:
        """Finished updates that are done again since the last recovery; more than 0 only where the job allows it."""
        return self._member.lost_steps if self._member else 0

    def steps(self, total: int) -> Iterator[Step]:
        """Steps until ``total`` updates are finished, from the one that is next, whatever happens in between."""
        while True:
            while self.step < total:
                yield from self.attempts(self.step)
            if self.finish():
                break

    def attempts(self, number: int) -> Iterator[Step]:
        """The step that follows ``number`` updates, as often as it takes; for loops that count steps themselves."""
        while self.step == number:
            if self._is_next():
                yield Step(self, number)

    def finish(self) -> bool:
        """
        After the last step of a loop that uses ``attempts``: wait for the others.

        Returns:
            Whether all have finished. Else somebody was lost and ``step`` says where training goes on.
        """
        if self._member is not None and not self._member.finish():
            return False
        if self._checkpoint is not None and self._checkpoint_every:
            self._save(last=True)
        return True

    def all_reduce_mean(self, value: Tensor) -> Tensor:
        """The mean of a tensor over all ranks, inside a step."""
        if self.world_size > 1:
            value = value.detach().clone()
            self._wait_for(dist.all_reduce(value, async_op=True))
            value /= self.world_size
        return value

    # What Step calls.

    def _is_next(self) -> bool:
        """Whether the next step can begin; False after a recovery here, which may have changed which step is next."""
        member = self._member
        if member is not None:
            member.faults.step = self.step
            try:
                member.check()
                member.faults.point("data")
            except Exception as error:
                if not self._survive(error, number=self.step):
                    raise
                return False
        return True

    def _check_model(self) -> None:
        """Gradients of parameters that came later would not be added up. Raises ValueError."""
        before, self._parameters = self._parameters, None
        now = list(self._state.model.parameters()) if before is not None else []
        if before is not None and (
            len(now) != len(before) or any(a is not b for a, b in zip(now, before, strict=True))
        ):
            raise ValueError(
                "the model has other parameters than when Run was made; what replaces them, such as fully_shard, has "
                "to come before Run"
            )

    def _begin(self, number: int) -> None:
        self._check_model()
        if self._member is not None and not self._member.left_cleanly:
            self._reducer.renew()
            self._member.left_cleanly = True
        self._reducer.begin(world_size=self.world_size)
        self._state.seed_step(step=number, rank=self.rank)
        if self._member is not None:
            self._state.note()
            self._member.progress("forward")
            self._in_step = True

    def _reduce(self, loss: float) -> float:
        member = self._member
        if member is None or member.world_size == 1:
            return loss
        compares = member.committed_step % self._digest_every == 0
        digest = self._state.digest() if compares else 0
        vote.cast(self._reducer.tail, step=member.committed_step, digest=digest, loss=loss)
        member.progress("vote")
        changed = self._state.changed_buffers()
        buffers = _packed(changed) if changed else None
        self._reducer.finish(from_first=buffers)
        outcome = vote.count(self._reducer.tail, world_size=member.world_size)
        member.judge(outcome)
        self._point("vote")
        if buffers is not None:
            _unpack(buffers, changed)
        return outcome.mean_loss

    def _apply(self) -> None:
        """The second phase: nobody else is needed, and only a whole update counts."""
        member = self._member
        if member is not None:
            member.validity = "torn"
        self._state.optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()  # type: ignore[attr-defined]  # every scheduler of torch has it
        self._end()
        if member is None:
            self._alone_step += 1
        else:
            self._state.committed()
            member.committed_step += 1
            member.validity = "valid"
            member.progress("other")
            member.faults.point("commit")
        self._save()

    def _end(self) -> None:
        self._in_step = False

    def _survive(self, error: BaseException, *, number: int) -> bool:
        """
        Whether an error was the loss of a peer, or may be tried again; then this process is in again.

        Args:
            number: Of the step that it ended. An error of the script itself after the update cannot be tried again.
        """
        self._end()
        member = self._member
        if isinstance(error, DivergenceError) and member is not None:
            member.diverged(error)
            return False
        if member is None or not isinstance(error, Exception):
            return False
        reason = f"{type(error).__name__}: {error}"
        # What a script's own collective raises looks like an error of the script, but for what the launcher says.
        if not of_peers(error) and not (isinstance(error, PEERS) and member.told_to_leave()):
            done = self.step > number
            reason = member.raised(error, step=number, where="after" if done else "step")
            if done:
                return False
        member.join(reason)
        return True

    def _bucket(self, number: int) -> None:
        if self._member is not None:
            self._point(f"bucket:{number}")

    def _wait_for(self, work: Any) -> None:
        if self._member is not None:
            self._member.wait(work)

    def _point(self, phase: str) -> None:
        if self._member is not None and self._in_step:
            self._member.check()
            self._member.faults.point(phase)

    def _save(self, *, last: bool = False) -> None:
        every = self._checkpoint_every
        if self._checkpoint is not None and every and (last or self.step % every == 0):
            self._checkpoint.save(self.step, self._state.tree(), rank=self.rank, world_size=self.world_size)


def _packed(tensors: list[Tensor]) -> Tensor:
    """The bytes of tensors of any types, one after the other."""
    return torch.cat([tensor.detach().reshape(-1).view(torch.uint8) for tensor in tensors])


@torch.no_grad()
def _unpack(data: Tensor, tensors: list[Tensor]) -> None:
    start = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        # A copy of its own begins where any type may begin.
        tensor.copy_(data[start : start + size].clone().view(tensor.dtype).view(tensor.shape))
        start += size
