"""What a step does to the training, in two phases, and what follows where one of them breaks."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from holdfast_runtime.elastic import Rounds, exact_norm, is_cut_by_rows
from holdfast_runtime.inprocess import vote
from holdfast_runtime.inprocess.errors import DivergenceError, TriedError, of_peers
from holdfast_runtime.inprocess.host_memory import resident_bytes, use_memory_once
from holdfast_runtime.inprocess.member import PEERS, Member
from holdfast_runtime.inprocess.reducer import Reducer
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.sharded import Ballot, NoCollectives, gathered
from holdfast_runtime.transfer import local


class Updates:
    """
    All updates of a run, one at a time; this is what its steps call.

    Args:
        member: None for a process that trains alone.
        digest_every: Updates between two comparisons of all replicas' parameters.
        bucket_bytes: Of gradients that are reduced together.
        committed: Called after each update.
        rounds: Logical ranks of a process that trains alone. Default: none, or the member's
    """

    def __init__(
        self,
        state: TrainingState,
        member: Member | None,
        *,
        digest_every: int,
        bucket_bytes: int,
        committed: Callable[[], None],
        rounds: Rounds | None = None,
    ) -> None:
        self.alone_step = 0
        """Updates that are finished, where there is no member to count them."""
        self._state = state
        self._member = member
        self._digest_every = digest_every
        self._committed = committed
        self._parameters: list[nn.Parameter] | None = list(state.model.parameters())
        """Until the first step has compared them with the model's."""
        made = member.taking.made if member is not None else None
        self._sharded = made.sharded if made is not None else None
        self._kept = made.kept if made is not None else None
        self._rounds = made.rounds if made is not None else rounds
        self._checked = self._sharded is None
        """Whether the optimizer was seen to need no other rank in its update."""
        self._loss: float | None = None
        """Of all ranks, in the step that runs."""
        self._before_trial_bytes = 0
        self._in_step = False
        """Between a step's beginning and its update: where the end of a generation is an error that the step takes."""
        self._reducer: Reducer | Ballot = (
            Ballot(list(state.model.parameters()), length=vote.LENGTH, wait=self.wait)
            if self._sharded is not None
            else Reducer(
                list(state.model.parameters()),
                tail=vote.LENGTH,
                bucket_bytes=bucket_bytes,
                on_gradient=self._check,
                on_bucket=lambda number: self._point(f"bucket:{number}"),
                wait=self.wait,
            )
        )
        if member is not None:
            member.taking.finish_update = lambda: self.apply(rejoining=True)
            member.taking.warm_up = self._warm_up
            faults = member.faults
            state.model.register_forward_pre_hook(lambda *_: self._point("forward"))
            # It does not look for a new generation: an update needs nobody, and half of one would be lost.
            state.optimizer.register_step_pre_hook(lambda *_: None if self.trial else faults.point("update"))

    @property
    def finished(self) -> int:
        """Updates that are finished."""
        return self._member.own.committed_step if self._member is not None else self.alone_step

    @property
    def trial(self) -> bool:
        """Whether this process has no rank yet, and tries a step alone."""
        return self._member is not None and self._member.own.built >= 0

    @property
    def can_try(self) -> bool:
        """Whether it can do so: the model is made for a rank, and needs nothing of the others."""
        return self.trial and self._sharded is not None and self._sharded.step_alone()

    @property
    def data_place(self) -> tuple[int, int]:
        """Which part of each batch is this rank's, and of how many."""
        if self._member is None:
            return 0, 1
        rank, size = self._member.own.rank, self._member.own.world_size
        return self._sharded.data_place if self._sharded is not None else (rank, size)

    def may_begin(self) -> bool:
        """True if the next step can begin; False after a recovery here, which may have changed which step is next."""
        member = self._member
        if member is not None and not self.trial:
            member.faults.step = self.finished
            if member.at_boundary:
                member.hand_over()
                return False
            try:
                member.peers.check()
                member.faults.point("data")
            except Exception as error:
                if not self.survive(error, number=self.finished):
                    raise
                return False
        return True

    def begin(self, number: int) -> None:
        """A step begins, for the first time or again. Raises ValueError for a model that is another than at first."""
        member = self._member
        self._check_model()
        if member is not None and not member.peers.left_cleanly:
            self._reducer.renew()
            member.peers.left_cleanly = True
        self._reducer.begin(world_size=member.own.world_size if member is not None else 1)
        self._state.seed_step(step=number, rank=self.data_place[0])
        if self._rounds is not None:
            rank, size = (member.own.rank, member.own.world_size) if member is not None else (0, 1)
            self._rounds.begin(rank=rank, size=size)
        if member is not None:
            member.own.prepared = False
            self._state.note()
            if self.trial:
                member.faults.point("trial")
                self._before_trial_bytes = resident_bytes()
                return
            member.telling.progress("forward")
            self._in_step = True

    def no_sync(self) -> AbstractContextManager[None]:
        """Around each backward of the step but its last one."""
        return self._reducer.no_sync()

    def reduce(self, loss: float) -> float:
        """The first phase: all gradients and votes are added up; the mean loss of all ranks."""
        member = self._member
        if self._rounds is not None:
            loss = self._rounds.mean_loss(wait=self.wait)
        if member is None or self.trial:
            return loss
        leaves = member.telling.leaves_after(member.own.committed_step + 1)
        if leaves:
            member.faults.point("leaving")
        if member.own.world_size == 1:
            member.at_boundary = leaves
            self._loss = loss
            return loss
        compares = member.own.committed_step % self._digest_every == 0
        if isinstance(self._reducer, Ballot):
            return self._voted(member, self._reducer, loss, leaves=leaves, compares=compares)
        digest = self._state.digest() if compares else 0
        vote.cast(self._reducer.tail, step=member.own.committed_step, digest=digest, loss=loss, leaves=leaves)
        member.telling.progress("vote")
        changed = self._state.changed_buffers()
        buffers = _packed(changed) if changed else None
        self._reducer.finish(from_first=buffers)
        outcome = vote.count(self._reducer.tail, world_size=member.own.world_size)
        member.agreement.judge(outcome)
        member.faults.point("vote")  # whoever has come so far goes on alone: another may have, and be gone since
        if buffers is not None:
            _unpack(buffers, changed)
        member.at_boundary = outcome.leaves == member.own.world_size
        self._loss = outcome.mean_loss
        return outcome.mean_loss

    def _voted(self, member: Member, ballot: Ballot, loss: float, *, leaves: bool, compares: bool) -> float:
        """
        As ``reduce``, where gradients are added up already.

        Who has come so far can do the update alone. So whoever does not see the end of the vote still does the update
        when another one has done it: the ranks of a sharded job cannot take it from each other.
        """
        ballot.settle()
        vote.cast(ballot.tail, step=member.own.committed_step, digest=0, loss=loss, leaves=leaves)
        member.telling.progress("vote")
        if compares:
            digests = gathered(self._state.digest(), world_size=member.own.world_size, wait=self.wait)
            member.agreement.compare(digests, twins=self._sharded.twins if self._sharded is not None else ())
        self._loss = loss
        member.own.prepared = True
        ballot.finish()
        outcome = vote.count(ballot.tail, world_size=member.own.world_size)
        member.agreement.judge(outcome)
        member.faults.point("vote")
        member.at_boundary = outcome.leaves == member.own.world_size
        self._loss = loss if self._rounds is not None else outcome.mean_loss
        return self._loss

    def parts(self) -> Iterator[int]:
        """The parts of the batch that this rank does, one after the other; gradients are whole after the last one."""
        rounds = self._rounds
        if rounds is None:
            yield self.data_place[0]
            return
        parameters = list(self._state.model.parameters())
        for number in range(rounds.count):
            rounds.number = number
            self._state.seed_step(step=self.finished, rank=rounds.mine)
            yield rounds.mine
            if rounds.size > 1 and not rounds.last:
                for parameter in parameters:
                    parameter.grad = None  # the sum so far is where it is added up
        for parameter in parameters:
            if parameter.grad is not None:
                local(parameter.grad).div_(rounds.logical)
        rounds.done = True

    def backward(self, loss: Tensor) -> None:
        """Gradients of one part."""
        loss.backward()  # type: ignore[no-untyped-call]
        if self._rounds is not None:
            self._rounds.note(float(loss.detach()))

    def clip(self, most: float) -> float:
        """
        Scale all gradients down to a norm over all ranks; what it was.

        In a job of logical ranks it has the same bits at any size.
        """
        if isinstance(self._reducer, Reducer) and self._member is not None:
            raise RuntimeError("gradients of replicas are whole after step.reduce(); clip them there, as torch does")
        if self._rounds is None:
            found = torch.nn.utils.clip_grad_norm_(self._state.model.parameters(), most)
            return float(found.full_tensor() if isinstance(found, DTensor) else found)
        gradients = [local(p.grad) for p in self._state.model.parameters() if p.grad is not None]
        norm = exact_norm(gradients, size=self._rounds.size, wait=self.wait)
        torch._foreach_mul_(gradients, min(1.0, most / (norm + 1e-6)))
        return norm

    def apply(self, *, rejoining: bool = False) -> None:
        """
        The second phase: nobody else is needed, and only a whole update counts.

        Args:
            rejoining: Between two generations, for a step that another rank has finished. Default: in a step.

        Raises:
            TriedError: nothing of the step counts.
        """
        member = self._member
        if self.trial:
            self._optimize()
            raise TriedError
        if member is not None:
            if self._kept is not None:
                self._kept.before_update()
            member.own.validity = "torn"
        self._optimize()
        if self._state.scheduler is not None:
            self._state.scheduler.step()  # type: ignore[attr-defined]  # every scheduler of torch has it
        self.end()
        if member is None:
            self.alone_step += 1
        else:
            self._state.committed()
            member.own.committed_step += 1
            member.own.validity, member.own.prepared = "valid", False
            member.taking.recutting.forget()
            member.telling.progress("other", loss=self._loss)
            member.faults.point("commit")
            if self._kept is not None and not rejoining:
                self._kept.after_update(member.own.committed_step)
        if not rejoining:
            self._committed()

    def _optimize(self) -> None:
        with contextlib.nullcontext() if self._checked else NoCollectives():  # type: ignore[no-untyped-call]
            self._state.optimizer.step()
        self._checked = True

    def end(self) -> None:
        """The step is over."""
        self._in_step = False

    def survive(self, error: BaseException, *, number: int) -> bool:
        """
        True if the step can be retried; the process has rejoined.

        Args:
            number: Of the step that the error ended. An error of the script after the update cannot be tried again.
        """
        self.end()
        member = self._member
        if self.trial and member is not None:
            if isinstance(error, TriedError):
                self._tried()
                member.take_rank()
                return True
            if isinstance(error, Exception):
                member.cannot(error)
            return False
        if isinstance(error, DivergenceError) and member is not None:
            member.telling.refuse(error)
            return False
        if member is None or not isinstance(error, Exception):
            return False
        reason = f"{type(error).__name__}: {error}"
        # What a script's own collective raises looks like an error of the script, but for what the launcher says.
        if not of_peers(error) and not (isinstance(error, PEERS) and member.peers.told_to_leave()):
            done = self.finished > number
            reason = member.telling.raised(error, step=number, where="after" if done else "step")
            if done:
                return False
        member.join(reason)
        return True

    def wait(self, work: Any) -> None:
        """Until a collective is done. Raises BrokenError."""
        if self._member is not None:
            self._member.peers.wait(work)

    def _tried(self) -> None:
        """Nothing is left of a step that was tried, but the memory that a rank's steps and snapshots take."""
        grown = resident_bytes() - self._before_trial_bytes
        if self._kept is not None and is_cut_by_rows(self._state.model):  # nobody else has this part
            self._kept.make_room()
        self._state.forget()
        if not self._state.on_gpu:
            # Collectives that take time hold as much again as those of a step alone.
            use_memory_once(2 * max(0, grown))

    def _warm_up(self) -> None:
        """
        Have memory for gradients and the optimizer's state, and do an update that counts for nothing.

        Of a model that has no rank yet: all of it is replaced by the state that comes with one.
        """
        if not isinstance(self._reducer, Reducer):
            return
        self._reducer.zero()
        try:
            self._state.optimizer.step()
        except Exception:  # noqa: BLE001 - one that asks for more than gradients makes its state in its first update
            self._state.forget()
        use_memory_once(self._reducer.host_bytes)

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

    def _check(self) -> None:
        if self._member is not None and self._in_step:
            self._member.peers.check()

    def _point(self, phase: str) -> None:
        if self._member is not None and self._in_step:
            self._member.peers.check()
            self._member.faults.point(phase)


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
