"""Update of a step in two phases, and the way out if one breaks."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from holdfast_runtime.elastic import Rounds, exact_norm
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.between import Between
from holdfast_runtime.inprocess.comparison import Comparison, digest_of_facts
from holdfast_runtime.inprocess.errors import BrokenError, TriedError
from holdfast_runtime.inprocess.leaving import Leaving
from holdfast_runtime.inprocess.leftover import OneUpdate
from holdfast_runtime.inprocess.member import Member
from holdfast_runtime.inprocess.reduction import Reducer, SharedBuffers, packed, unpack, vote
from holdfast_runtime.inprocess.same_batch import NEAR, NEAR_ON_GPU, SameBatch
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.step import Step
from holdfast_runtime.sharded import Ballot, NoCollectives
from holdfast_runtime.state import before_forward, before_step
from holdfast_runtime.transfer import local


class Updates:
    """
    All updates of a run, one at a time; this is what its steps call.

    Args:
        member: None for a process that trains alone.
        digest_every: Updates between two comparisons of all replicas' parameters.
        bucket_bytes: Of gradients that are reduced together.
        after_update: Called with the number of finished updates, as part of each update. Default: nothing.
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
        after_update: Callable[[int], object] | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        self.alone_step = 0
        """Updates that are finished, where there is no member to count them."""
        self._state = state
        self._member = member
        self._committed = committed
        self._after_update = after_update
        self._ended = False
        """Whether a step was committed here since the code between two steps ran last."""
        self._between_generation = 0
        """The generation in which it ran last: in a new one all ranks see to the step's end, newcomers too."""
        self._stepped: Any = None
        """How often the scheduler has stepped, as it was left by the last update."""
        self._parameters: list[nn.Parameter] | None = list(state.model.parameters())
        """Until the first step has compared them with the model's."""
        made = member.taking.made if member is not None else None
        self._sharded = made.sharded if made is not None else None
        self._kept = made.kept if made is not None else None
        self._rounds = made.rounds if made is not None else rounds
        self._checked: bool | None = None
        """Whether the optimizer was seen to need no other rank in its update; None before the first step."""
        self._loss: float | None = None
        """Of all ranks, in the step that runs."""
        self._number = 0
        """Of the step that runs."""
        state.reduces = self._sharded is None
        self._comparison = Comparison(state, every=digest_every, sharded=self._sharded, wait=self.wait)
        self._in_step = False
        """Between a step's beginning and its update: where the end of a generation is an error that the step takes."""
        self._generation = -1
        """The one whose buffers are known."""
        self._buffers = SharedBuffers(
            buffers=state.buffers, changed=state.changed_buffers, put=state.put_buffers, wait=self.wait
        )
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
        self._leaving = Leaving(state, member)
        self.between = Between(state, member, settle=self._settle)
        self._one_update = OneUpdate(state.optimizer)
        self._same_batch = SameBatch(near=NEAR_ON_GPU if state.on_gpu else NEAR)
        # The inputs of a stage are what its neighbour sends: of one that is lost, anything.
        self._has_own_data = self._sharded is None or not self._sharded.has_stages
        if member is not None:
            member.taking.finish_update = lambda: self.apply(rejoining=True)
            member.taking.warm_up = self._warm_up
            member.compare = self.compare
            faults = member.faults
            before_forward(state.model, self._forward)
            # It does not look for a new generation: an update needs nobody, and half of one would be lost.
            before_step(state.optimizer, lambda *_: None if self.trial else faults.point("update"))

    def begin_loop(self) -> None:
        self._comparison.begin_loop()

    @property
    def finished(self) -> int:
        return self._member.own.committed_step if self._member is not None else self.alone_step

    @property
    def trial(self) -> bool:
        return self._member is not None and self._member.own.built >= 0

    @property
    def can_try(self) -> bool:
        return self.trial and self._sharded is not None and self._sharded.step_alone()

    @property
    def data_place(self) -> tuple[int, int]:
        if self._member is None:
            return 0, 1
        rank, size = self._member.own.rank, self._member.own.world_size
        return self._sharded.data_place if self._sharded is not None else (rank, size)

    def mean_loss_of(self, number: int) -> float | None:
        return self._state.loss if self.finished == number + 1 else None

    def is_done(self, number: int) -> bool:
        """True if the update of a step is committed, here or by others."""
        view = self._member.next_view if self._member is not None else None
        return (view.resume_step if view is not None else self.finished) > number

    def may_begin(self) -> bool:
        """True if the next step can begin; False after a recovery here, which may have changed which step is next."""
        member = self._member
        if member is not None and not self.trial:
            member.faults.step = self.finished
            if member.at_boundary:
                member.hand_over()
                return False
        return self._is_between(ends=False)

    def may_end(self) -> bool:
        """True if the loop can end: all ranks have done what stands behind its last step. False after a recovery."""
        return self.between.function is None or self._is_between(ends=True)

    def _is_between(self, *, ends: bool) -> bool:
        member = self._member
        if member is not None and member.has_left and not self.trial:
            member.join()
            return False
        try:
            if member is not None and not self.trial:
                member.peers.check()
                member.agreement.variables.begin()
            self._settle()
            if not ends:
                self.end_step()
            if not self.trial:
                self.between.run(self.finished)
            if member is not None and not (ends or self.trial):
                member.faults.point("data")
        except Exception as error:
            if self.trial or not self._leaving.leave(error, number=self.finished):
                raise
            return False
        return True

    def _settle(self) -> None:
        self._state.note_first()
        if self.trial:
            return
        if self._sharded is not None:
            self._sharded.reshard()
        self._state.reach_boundary()
        self._state.seed_between(step=self.finished, rank=self.data_place[0])

    def end_step(self) -> None:
        member = self._member
        if self.trial:
            return
        generation = member.own.generation if member is not None else 0
        is_first = generation != self._between_generation
        begins_loop = 0 < self.finished == self._state.settled
        if self._kept is not None and begins_loop and (is_first or self._ended):
            self._kept.take_safe(self.finished)  # going back into the loop before is refused
        elif self._kept is not None and is_first:
            self._kept.take(self.finished)
        elif self._kept is not None and self._ended:
            self._kept.after_step(self.finished)
        if self.finished and (self._ended or is_first):
            self._committed()
        self._ended, self._between_generation = False, generation

    def begin(self, number: int) -> None:
        """A step begins, for the first time or again. Raises ValueError for a model that is another than at first."""
        member = self._member
        self._number = number
        self._check_model()
        if self._checked is None:  # one that begins with the state of others has their update, mode for mode
            self._checked = member is None or (self._sharded is None and member.own.recovered)
        if member is not None:
            self._state.begin(number)
            if member.own.generation != self._generation:
                self._generation, self._stepped = member.own.generation, None
                self._buffers.begin_generation()
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
            if self.trial:
                member.faults.point("trial")
                return
            member.reporter.progress("forward")
            self._same_batch.begin(number, self.data_place)
            self._in_step = True

    def no_sync(self) -> AbstractContextManager[None]:
        return self._reducer.no_sync()

    @property
    def is_sharded(self) -> bool:
        return self._sharded is not None

    def mean_loss(self, loss: float) -> float:
        if self._rounds is not None:
            return self._rounds.mean_loss(wait=self.wait)
        if self._member is None or self.trial or self._member.own.world_size == 1:
            return loss
        return float(self.mean(torch.tensor(loss, dtype=torch.float64, device=self._member.peers.device)))

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean of a tensor over all ranks. A collective."""
        member = self._member
        assert member is not None
        own = value.detach().clone()
        if member.peers.backend == "nccl":
            own = own.to(member.peers.device)
        member.peers.wait(dist.all_reduce(own, async_op=True), device=own.device)
        return (own / dist.get_world_size()).to(value.device)

    def reduce(self, loss: float) -> float:
        member = self._member
        if self._rounds is not None:
            loss = self._rounds.mean_loss(wait=self.wait)
        if member is None or self.trial:
            return loss
        if self._rounds is None and self._has_own_data:
            self._same_batch.note_loss(loss)
        self._state.check_structure()
        self._reducer.check_unchanged()
        self._state.before_update()
        leaves = member.reporter.leaves_after(member.own.committed_step + 1)
        if leaves:
            member.faults.point("leaving")
        if member.own.world_size == 1:
            member.at_boundary = leaves
            self._loss = loss
            return loss
        compares = self._comparison.is_whole(generation=member.own.generation, step=member.own.committed_step)
        if isinstance(self._reducer, Ballot):
            return self._voted(member, self._reducer, loss, leaves=leaves, compares=compares)
        digest = self._state.digest() if compares else 0
        self._comparison.gather(step=member.own.committed_step + 1)
        changed = self._buffers.to_send(member.peers.smallest)
        buffers = packed(changed) if changed else None
        tail = self._reducer.tail
        facts = self._comparison.facts(whole=compares)
        vote.cast(
            tail,
            step=member.own.committed_step,
            digest=digest,
            loss=loss,
            leaves=leaves,
            facts=digest_of_facts(facts),
            buffers=self._buffers.layout(),
        )
        member.reporter.progress("vote")
        self._reducer.finish(from_first=buffers)
        outcome = vote.count(tail, world_size=member.own.world_size)
        if tail.is_cuda:
            member.peers.check()  # an abort ends a collective with a part of the data, and without an error
        self._comparison.judge_vote(outcome, facts, member=member)
        member.faults.point("vote")  # a rank that has come so far goes on alone: another may have, and be gone since
        if buffers is not None:
            unpack(buffers, changed)
        self._buffers.end_step()
        member.at_boundary = outcome.leaves == member.own.world_size
        self._loss = outcome.mean_loss
        return outcome.mean_loss

    def compare(self) -> None:
        """Compare all that must be equal, as it is now. A collective of all ranks; for ends and checkpoints."""
        member = self._member
        if member is not None and member.own.world_size > 1:
            if self._sharded is not None:
                self._sharded.reshard()
            self._state.reach_boundary()
            self._comparison.compare_now(member)

    def _voted(self, member: Member, ballot: Ballot, loss: float, *, leaves: bool, compares: bool) -> float:
        assert self._sharded is not None
        self._sharded.reshard()  # what a forward without a backward has gathered is not this rank's part
        member.reporter.progress("vote")  # all ranks wait here for the GPU, which may wait for a lost one
        if ballot.settle():
            member.peers.check()  # an abort ends a collective with a part of the data, and without an error
        facts = self._comparison.facts(whole=compares)
        digest = digest_of_facts(facts)
        vote.cast(ballot.tail, step=member.own.committed_step, digest=0, loss=loss, leaves=leaves, facts=digest)
        self._comparison.note_own_buffers(member)
        if compares:
            self._comparison.compare_twins(member)
        self._comparison.gather(step=member.own.committed_step + 1)
        self._loss = loss if self._rounds is not None else None  # the mean of all is what the vote has
        member.own.prepared = True
        try:
            ballot.finish()
        except BrokenError as error:
            member.leave(str(error))
            if not self.is_done(self._number):
                raise
            known = self._state.loss
            return loss if known is None else known
        outcome = vote.count(ballot.tail, world_size=member.own.world_size)
        self._comparison.judge_vote(outcome, facts, member=member)
        member.faults.point("vote")
        member.at_boundary = outcome.leaves == member.own.world_size
        self._loss = loss if self._rounds is not None else outcome.mean_loss
        return self._loss

    def parts(self) -> Iterator[int]:
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
        loss.backward()  # type: ignore[no-untyped-call]
        if self._rounds is not None:
            self._rounds.note(float(loss.detach()))

    def clip(self, most: float) -> float:
        """Scale all gradients to a norm over all ranks; return the previous norm. With logical ranks, the same bits."""
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
            if not (rejoining or self._in_step):
                return  # done already, when its peers were lost in the vote
            if self._kept is not None:
                self._kept.before_update()
            member.own.validity = "torn"
        self._optimize(whole=True)
        self.end()
        self._ended = True
        if member is None:
            self.alone_step += 1
        else:
            self._state.committed(loss=self._loss)
            member.own.committed_step += 1
            member.own.validity, member.own.prepared = "valid", False
            member.taking.recutting.forget()
            if member.recorded is not None:
                member.recorded.is_whole = True
            member.reporter.progress("other", loss=self._loss)
            member.faults.point("commit")

    def _step_scheduler(self) -> None:
        """Step the schedule of ``Run(scheduler=)``. Raises UnsupportedError if the program steps it too."""
        scheduler: Any = self._state.scheduler
        if scheduler is None:
            return
        steps = getattr(scheduler, "last_epoch", None)
        if self._stepped not in (None, (self.finished, steps)):
            raise UnsupportedError(
                f"Run(scheduler=...) steps {type(scheduler).__name__} after each update, and the program steps it too "
                f"(last_epoch is {steps} after {self.finished} updates, and was {self._stepped[1]}); delete the "
                "program's scheduler.step(), or give the scheduler to Run(state=...) instead"
            )
        scheduler.step()
        self._stepped = (self.finished + 1, getattr(scheduler, "last_epoch", None))

    def _optimize(self, *, whole: bool = False) -> None:
        self._state.seed_update(step=self.finished)
        with contextlib.nullcontext() if self._checked else NoCollectives():
            with self._one_update.open():
                self._state.optimizer.step()
            if whole:
                self._step_scheduler()
                if self._after_update is not None:
                    self._after_update(self.finished + 1)
        self._checked = True
        self._state.seed_after_update(step=self.finished, rank=self.data_place[0])

    def end(self) -> None:
        self._in_step = False

    def survive(self, error: BaseException, *, step: Step) -> bool:
        """Return True if the training goes on, with this step again or the next one."""
        self.end()
        member = self._member
        if self.trial and member is not None:
            if isinstance(error, TriedError):
                self._state.forget()
                member.take_rank()
                return True
            if isinstance(error, Exception):
                member.cannot(error)
            return False
        if member is not None and isinstance(error, Exception) and self.finished > step.number:
            survives = self._leaving.leave_after_update(error, step, member)
        else:
            self._state.left_last = step.number
            survives = self._leaving.leave(error, number=step.number)
        if survives and self._sharded is not None:
            self._sharded.forget_step()  # code after the step sees the parts of this rank, and nothing gathered
        return survives

    def wait(self, work: Any) -> None:
        """Until a collective is done. Raises BrokenError."""
        if self._member is not None:
            self._member.peers.wait(work)

    def _warm_up(self) -> None:
        if not isinstance(self._reducer, Reducer):
            return
        self._reducer.zero()
        try:
            with self._one_update.open():
                self._state.optimizer.step()
        except Exception:  # noqa: BLE001 - one that asks for more than gradients makes its state in its first update
            self._state.forget()

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

    def _forward(self, _model: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self.between.runs:
            self.between.look()
        self._point("forward")
        if self._in_step and self._has_own_data:
            self._same_batch.see(given, named)

    def _point(self, phase: str) -> None:
        if self._member is not None and self._in_step:
            self._member.peers.check()
            self._member.faults.point(phase)
