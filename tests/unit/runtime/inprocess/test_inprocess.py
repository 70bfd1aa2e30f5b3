"""A training loop alone, and under a launcher that the test plays: what a rank does with leaves, views and stops."""

import copy
import io
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from fake_launcher import FakeLauncher
from sleeping_work import SleepingWork
from torch import Tensor, nn

import holdfast_runtime as holdfast
from holdfast_runtime.control import Fault, Finished, Put, Raised, Ready
from holdfast_runtime.inprocess import (
    Agreement,
    BrokenError,
    Outcome,
    StoppedError,
    TrainingState,
    Updates,
    digest_of,
    weighted_sum,
)
from holdfast_runtime.snapshots import ReplicaCheckpoints
from holdfast_runtime.transfer import Flat, read_skeleton

QUICK = (
    '{"beat": 0.1, "heartbeat": 0.5, "leave": 0.6, "ready": 0.7, "minority": 3, "view": 4, "connect": 5, '
    '"transfer": 6, "start": 9, "progress": 5, "stop": 1}'
)


class Seen:
    """State of a script: a number, a tensor that it changes in place, and an array."""

    def __init__(self) -> None:
        self.count = 0
        self.average = torch.zeros(3)
        self.array = np.zeros(2)

    def add(self) -> None:
        self.count += 1
        self.average.data.add_(1)
        self.array += 1

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "average": self.average, "array": self.array}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]
        self.average.copy_(state["average"])
        self.array[:] = state["array"]

    def numbers(self) -> list[float]:
        return [self.count, *self.average.tolist(), *self.array.tolist()]


def make_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def doubled(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(2 * each for each in given)


def batch(step: int) -> Tensor:
    return torch.randn(16, 4, generator=torch.Generator().manual_seed(step))


class Program:
    """A script, as a user would write it, with a place for what a test does in each step."""

    def __init__(self, **options: Any) -> None:
        self.model = make_model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.seen = Seen()
        self.run = holdfast.Run(
            self.model, self.optimizer, scheduler=self.scheduler, state={"seen": self.seen}, **options
        )
        self.begun: list[int] = []

    def train(
        self,
        total: int,
        *,
        between: Callable[[int], None] = lambda _step: None,
        inside: Callable[[int], None] = lambda _step: None,
        after: Callable[[int], None] = lambda _step: None,
    ) -> None:
        for step in self.run.steps(total):
            between(step.number)
            with step:
                self.begun.append(step.number)
                self.seen.add()
                loss = self.model(batch(step.number)).square().mean()
                loss.backward()
                inside(step.number)
                step.update(loss)
                after(step.number)

    def digest(self) -> int:
        moments = [value for state in self.optimizer.state.values() for value in state.values()]
        return digest_of([*self.model.state_dict().values(), *moments, torch.tensor(self.seen.numbers())])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Several add up in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLauncher]:
    monkeypatch.setenv("HOLDFAST_DEADLINES", QUICK)
    with FakeLauncher.of_this_process(monkeypatch) as fake:
        yield fake


def once(step: int, act: Callable[[], None]) -> Callable[[int], None]:
    """Act at the first time that a step is reached."""
    left = [act]

    def reach(number: int) -> None:
        if number == step and left:
            left.pop()()

    return reach


def calm(total: int) -> int:
    """The digest of a training that nobody disturbs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_CONTROL_FD")
        program = Program()
    program.train(total)
    return program.digest()


# Alone.


def test_alone_it_gives_the_bits_of_the_plain_loop() -> None:
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for step in range(5):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()
        scheduler.step()
    program = Program()
    program.train(5)
    assert digest_of(program.model.state_dict().values()) == digest_of(model.state_dict().values())


def test_alone_it_starts_no_thread_and_has_one_rank() -> None:
    before = threading.enumerate()
    program = Program()
    program.train(2)
    run = program.run
    assert threading.enumerate() == before
    assert (run.rank, run.world_size, run.generation, run.step, run.is_logger, run.lost_steps) == (0, 1, 0, 2, True, 0)
    assert run.all_reduce_mean(torch.tensor(3.0)).item() == 3.0


def test_what_stands_behind_a_loop_that_had_ended_before_is_printed_once(tmp_path: Path) -> None:
    checkpoints = ReplicaCheckpoints(tmp_path)
    Program(checkpoint=checkpoints, checkpoint_every=1).train(3)
    checkpoints.wait()
    resumed = Program(checkpoint=ReplicaCheckpoints(tmp_path), checkpoint_every=1)
    printed = [resumed.run.is_logger]

    for total in (2, 3, 4):
        resumed.train(total)
        printed.append(resumed.run.is_logger)

    assert printed == [True, False, True, True]


class Recorded:
    """An update of which nothing is done but told."""

    def __init__(self, *, is_sharded: bool = False) -> None:
        self.told: list[object] = []
        self.is_sharded = is_sharded

    def mean_loss(self, loss: float) -> float:
        self.told.append(("mean", loss))
        return loss / 2

    def begin(self, number: int) -> None:
        self.told.append(("begin", number))

    def no_sync(self) -> AbstractContextManager[None]:
        self.told.append("no_sync")
        return nullcontext()

    def reduce(self, loss: float) -> float:
        self.told.append(("reduce", loss))
        return loss / 2

    def apply(self) -> None:
        self.told.append("apply")

    def end(self) -> None:
        self.told.append("end")

    def is_done(self, number: int) -> bool:
        return ("begin", number + 1) in self.told

    def survive(self, error: BaseException, *, step: holdfast.Step) -> bool:
        self.told.append(("survive", str(error), step.number))
        return True


def test_a_step_needs_of_its_run_what_update_has_and_nothing_else() -> None:
    update = Recorded()
    with holdfast.Step(update, 3) as step:
        with step.accumulate():
            pass
        assert step.update(4.0) == step.loss == 2.0
    with holdfast.Step(update, 4):
        raise OSError("a peer is gone")

    first = [("begin", 3), "no_sync", ("reduce", 4.0), "apply", "end"]
    assert update.told == [*first, ("begin", 4), ("survive", "a peer is gone", 4)]


def test_a_rank_of_a_sharded_job_votes_when_its_script_has_done_all_to_the_gradients() -> None:
    update = Recorded(is_sharded=True)
    with holdfast.Step(update, 3) as step:
        assert step.reduce(4.0) == 2.0
        update.told.append("clip")
        step.update()

    assert update.told == [("begin", 3), ("mean", 4.0), "clip", ("reduce", 4.0), "apply", "end"]


def test_alone_an_error_of_the_script_is_its_own() -> None:
    def fail() -> None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        Program().train(3, inside=once(1, fail))


def test_random_numbers_are_a_function_of_seed_step_and_rank() -> None:
    def draw() -> list[tuple[float, float, float]]:
        torch.manual_seed(9)
        run = Program().run
        drawn = []
        for step in run.steps(2):
            with step:
                drawn.append((torch.rand(1).item(), random.random(), np.random.rand()))
                step.update(0.0)
        return drawn

    first = draw()
    assert first == draw()
    assert len({number for numbers in first for number in numbers}) == 6


def test_what_an_update_draws_is_the_same_on_all_ranks_and_what_follows_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def draw(rank: int) -> tuple[list[tuple[float, float, float]], list[float]]:
        monkeypatch.setattr(Updates, "data_place", (rank, 2))
        torch.manual_seed(9)
        drawn, after = list[tuple[float, float, float]](), list[float]()

        def in_update(*_: object) -> None:
            drawn.append((torch.rand(1).item(), random.random(), np.random.rand()))

        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.register_step_post_hook(in_update)
        for step in holdfast.Run(model, optimizer, after_update=in_update).steps(2):
            with step:
                step.update(0.0)
                after.append(torch.rand(1).item())
        return drawn, after

    (one, after_one), (other, after_other) = draw(0), draw(1)
    assert one == other
    assert len({number for numbers in one for number in numbers}) == 12
    assert len({*after_one, *after_other}) == 4


def test_a_step_without_an_update_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match=r"step 0 ended without step.update"), next(Program().run.steps(1)):
        pass


def test_whole_gradients_can_be_changed_between_reduction_and_update() -> None:
    program = Program()
    norms = []
    for step in program.run.steps(1):
        with step:
            loss = program.model(batch(0)).square().mean()
            loss.backward()
            assert step.reduce(loss) == loss.item()
            nn.utils.clip_grad_norm_(program.model.parameters(), 1e-3)
            norms = [p.grad.norm().item() for p in program.model.parameters() if p.grad is not None]
            assert step.update() == loss.item()
    assert 0 < sum(norms) < 1e-2


def test_microbatches_are_one_step() -> None:
    program = Program()
    for step in program.run.steps(1):
        with step:
            with step.accumulate():
                program.model(batch(0)).sum().backward()
            program.model(batch(1)).sum().backward()
            step.update(0.0)
    assert program.run.step == 1


@pytest.mark.parametrize("state", [{"x": object()}, {"x": {1, 2}, "y": Seen()}])
def test_state_that_cannot_be_sent_is_refused_before_training(state: dict[str, Any]) -> None:
    class Odd:
        def state_dict(self) -> dict[str, Any]:
            return state

        def load_state_dict(self, state: dict[str, Any]) -> None: ...

    model = make_model()
    with pytest.raises(ValueError, match=r"state_dict\(\) of odd cannot be sent"):
        holdfast.Run(model, torch.optim.SGD(model.parameters()), state={"odd": Odd()})


def test_an_optimizer_that_cannot_be_sent_is_refused_before_training() -> None:
    model = make_model()
    optimizer = torch.optim.SGD([{"params": model.parameters(), "rule": object()}])
    with pytest.raises(ValueError, match=r"state_dict\(\) of optimizer cannot be sent"):
        holdfast.Run(model, optimizer)


def test_the_public_names_are_found_without_importing_torch_for_the_launcher() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = holdfast.nothing
    assert all(getattr(holdfast, name) is not None for name in holdfast.__all__)


# Under a launcher.


def test_a_rank_says_where_it_is_trains_and_finishes(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    program.train(3)
    ready = launcher.wait(Ready)
    assert (ready.committed_step, ready.state, ready.reason) == (0, "none", "")
    assert ready.port > 0
    assert launcher.wait(Finished).committed_step == 3
    assert program.digest() == calm(3)


def test_a_model_of_a_run_is_copied_and_saved_whole_with_the_hooks_of_its_program_alone(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    program.model.register_forward_pre_hook(doubled)
    file = io.BytesIO()
    torch.save(program.model, file)
    file.seek(0)

    for other in (copy.deepcopy(program.model), torch.load(file, weights_only=False)):
        assert [*other._forward_pre_hooks.values()] == [doubled]
        assert torch.equal(other.eval()(batch(0)), program.model.eval()(batch(0)))
    program.model.train()
    program.train(3)


def test_a_leave_between_two_steps_ends_no_process(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def interrupt() -> None:
        launcher.leave(2)
        assert program.run._member is not None
        assert program.run._member.peers.wait_for_leave(within_s=5.0)
        launcher.view(2, step=2)

    program.train(4, between=once(2, interrupt))
    assert launcher.wait(Ready, count=2).committed_step == 2
    assert program.run.generation == 2
    assert program.digest() == calm(4)


def test_a_collective_that_never_ends_is_left_all_the_same(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    member, work = program.run._member, SleepingWork()
    assert member is not None
    threading.Timer(0.1, launcher.leave, [2]).start()

    with pytest.raises(BrokenError, match="generation 1 is over"):
        member.peers.wait(work)

    assert work.looks >= 1
    launcher.view(2, source="fresh")
    program.train(2)


def test_a_leave_during_an_evaluation_between_steps_does_not_break_the_evaluation(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def evaluate() -> None:
        launcher.leave(2)
        assert program.run._member is not None
        assert program.run._member.peers.wait_for_leave(within_s=5.0)
        launcher.view(2, step=1)
        program.model.eval()
        with torch.no_grad():
            program.model(batch(0))
        program.model.train()

    program.train(3, between=once(1, evaluate))
    assert program.run.generation == 2
    assert program.digest() == calm(3)


def test_a_step_that_is_left_before_its_update_is_done_again_with_the_same_bits(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def interrupt() -> None:
        launcher.leave(2)
        assert program.run._member is not None
        assert program.run._member.peers.wait_for_leave(within_s=5.0)
        launcher.view(2, step=1)
        program.run._member.peers.check()

    program.train(3, inside=once(1, interrupt))
    assert program.begun == [0, 1, 1, 2]
    assert launcher.wait(Ready, count=2).state == "valid"
    assert program.digest() == calm(3)


def test_collectives_behind_a_step_that_was_left_move_nothing_and_the_step_is_done_again(
    launcher: FakeLauncher,
) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    member = program.run._member
    assert member is not None
    logged: list[float] = []
    left = False
    for step in program.run.steps(3):
        with step:
            program.seen.add()
            loss = program.model(batch(step.number)).square().mean()
            loss.backward()
            if step.number == 1 and not left:
                left = True
                member.own.world_size = 2
                launcher.leave(2)
                assert member.peers.wait_for_leave(within_s=5.0)
                launcher.view(2, step=1)
                member.peers.check()
            step.update(loss)
        if not step.done:
            value = torch.ones(1)
            dist.all_reduce(value)
            logged += [value.item(), program.run.all_reduce_mean(torch.tensor(3.0)).item()]

    assert logged == [1.0, 3.0]
    assert not dist.is_initialized()
    assert program.digest() == calm(3)


def test_a_leave_does_not_stop_an_update_that_all_ranks_have_agreed_on(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def interrupt(*_: object) -> None:
        if program.run.step == 1 and program.run.generation == 1:
            launcher.leave(2)
            assert program.run._member is not None
            assert program.run._member.peers.wait_for_leave(within_s=5.0)
            launcher.view(2, step=2)

    # In front of the hook that Run has made: the leave comes in the middle of the update.
    hook = program.optimizer.register_step_pre_hook(interrupt)
    program.optimizer._optimizer_step_pre_hooks.move_to_end(hook.id, last=False)
    program.train(3)
    ready = launcher.wait(Ready, count=2)
    assert (ready.committed_step, ready.state) == (2, "valid")
    assert program.begun == [0, 1, 2]
    assert program.digest() == calm(3)


def test_a_leave_that_comes_with_the_end_of_the_vote_takes_no_step_back_that_another_rank_may_have_done(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def two_ranks() -> None:
        member, reducer = program.run._member, program.run._updates._reducer
        assert member is not None
        member.own.world_size = 2
        monkeypatch.setattr(member.peers, "smallest", lambda numbers: numbers)

        def finish(**_: object) -> None:
            reducer.tail.mul_(2)  # the other rank's vote is the same
            launcher.leave(2)
            assert member.peers.wait_for_leave(within_s=5.0)
            launcher.view(2, step=2)

        monkeypatch.setattr(reducer, "finish", finish)

    program.train(3, inside=once(1, two_ranks))
    ready = launcher.wait(Ready, count=2)
    assert (ready.committed_step, ready.state) == (2, "valid")
    assert program.begun == [0, 1, 2]
    assert program.digest() == calm(3)


class OnGpu(Tensor):
    """A tensor that says so."""

    is_cuda = True  # type: ignore[assignment]


def test_a_vote_that_an_abort_may_have_cut_is_not_counted(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU the end of a collective proves nothing where communicators are being aborted."""
    launcher.view(1, source="fresh")
    program = Program()

    def two_ranks() -> None:
        member, reducer = program.run._member, program.run._updates._reducer
        assert member is not None
        member.own.world_size = 2
        reducer.tail = reducer.tail.as_subclass(OnGpu)
        monkeypatch.setattr(member.peers, "smallest", lambda numbers: numbers)

        def finish(**_: object) -> None:
            reducer.tail.mul_(2)  # the tail came whole; other buckets may not have
            launcher.leave(2)
            assert member.peers.wait_for_leave(within_s=5.0)
            launcher.view(2, step=1)
            vars(reducer).pop("finish")  # its own again

        reducer.finish = finish  # type: ignore[method-assign]

    program.train(3, inside=once(1, two_ranks))
    ready = launcher.wait(Ready, count=2)
    assert (ready.committed_step, ready.state) == (1, "valid")
    assert program.begun == [0, 1, 1, 2]
    assert program.digest() == calm(3)


def test_gradients_that_an_abort_may_have_cut_are_not_voted_on() -> None:
    """A sharded job: all ranks wait for the GPU in the phase of the vote, where silence is noticed."""
    order: list[str] = []

    def check() -> None:
        raise BrokenError("generation 1 is over")

    member: Any = SimpleNamespace(
        reporter=SimpleNamespace(progress=order.append),
        peers=SimpleNamespace(check=check),
        own=SimpleNamespace(prepared=False),
    )
    ballot: Any = SimpleNamespace(settle=lambda: order.append("settle") or True)

    updates: Any = SimpleNamespace(_sharded=SimpleNamespace(reshard=lambda: None))

    with pytest.raises(BrokenError):
        Updates._voted(updates, member, ballot, 0.0, leaves=False, compares=False)

    assert order == ["vote", "settle"]
    assert not member.own.prepared


def test_nothing_of_a_committed_step_is_put_back(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def interrupt() -> None:
        launcher.leave(2)
        assert program.run._member is not None
        assert program.run._member.peers.wait_for_leave(within_s=5.0)
        launcher.view(2, step=3)

    program.train(3, after=once(2, interrupt))
    assert program.run.generation == 2
    assert program.begun == [0, 1, 2]
    assert program.digest() == calm(3)


def test_a_rank_that_is_torn_in_its_update_says_so(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    launcher.stop(exit_code=9)

    def fail(*_: object) -> None:
        raise RuntimeError("a bit flipped")

    program.optimizer.register_step_post_hook(fail)
    with pytest.raises(holdfast.StoppedError) as caught:
        program.train(1)
    assert caught.value.code == 9
    ready = launcher.wait(Ready, count=2)
    assert (ready.committed_step, ready.state) == (0, "torn")
    assert "a bit flipped" in ready.reason
    assert "a bit flipped" in launcher.wait(Raised).what


def test_an_error_of_the_script_is_told_with_its_traceback_and_the_launcher_decides(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def fail(step: int) -> None:
        if step == 1:
            if len(program.begun) == 2:
                launcher.view(2, step=1)
            else:
                launcher.stop(exit_code=1)
            raise ValueError("a mistake")

    with pytest.raises(StoppedError):
        program.train(3, inside=fail)
    assert program.begun == [0, 1, 1]
    told = [launcher.wait(Raised), launcher.wait(Raised, count=2)]
    assert [(item.step, item.generation, item.where) for item in told] == [(1, 1, "step"), (1, 2, "step")]
    assert told[0].what.startswith("ValueError: a mistake (test_inprocess.py:")
    assert 'raise ValueError("a mistake")' in told[0].traceback
    assert not [message for message in launcher.said if isinstance(message, Fault)]


def test_the_end_of_the_data_of_one_rank_in_a_step_is_said_once_and_not_tried_again(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    data = iter([1])

    with pytest.raises(StopIteration):
        Program().train(3, inside=lambda _step: next(data))  # type: ignore[arg-type]

    told = launcher.wait(Fault)
    assert told.fatal
    assert told.reason.startswith("the data of rank 0 ended in step 1; all ranks have as many batches")


def test_an_error_of_the_script_is_told_also_when_somebody_else_has_ended_the_generation(
    launcher: FakeLauncher,
) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def fail() -> None:
        launcher.leave(2)
        while not program.run._member.peers.must_leave:  # type: ignore[union-attr]
            pass
        launcher.view(2, step=1)
        raise ValueError("a mistake")

    program.train(3, inside=once(1, fail))
    assert launcher.wait(Raised).step == 1


def test_what_a_script_makes_of_the_loss_of_a_peer_is_no_error_of_its_own(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def fail() -> None:
        launcher.view(2, step=1)
        raise ValueError("no mistake") from BrokenError("somebody is gone")

    program.train(3, inside=once(1, fail))
    assert not [message for message in launcher.said if isinstance(message, Raised)]


def test_state_that_cannot_be_put_back_is_an_error_of_the_script_and_not_a_lost_peer(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    program.seen.load_state_dict = broken_load  # type: ignore[method-assign]

    def leave() -> None:
        launcher.view(2, step=1)
        launcher.stop(exit_code=1)
        raise BrokenError("somebody is gone")

    with pytest.raises(StoppedError):
        program.train(3, inside=once(1, leave))
    told = launcher.wait(Raised)
    assert (told.where, told.step, told.generation) == ("recovery", 1, 2)
    assert "this state cannot be loaded" in told.what


def broken_load(_state: dict[str, Any]) -> None:
    raise RuntimeError("this state cannot be loaded")


def test_parameters_that_came_after_run_are_refused_at_the_first_step(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    program.model[0].weight = nn.Parameter(torch.zeros(8, 4))  # type: ignore[index]

    with pytest.raises(ValueError, match="has to come before Run"):
        program.train(3)


def test_the_exception_that_ends_the_program_is_told_before_it_is_printed(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: printed.append(str(error)))
    launcher.view(1, source="fresh")
    program = Program()
    error = OSError("the log is full")

    sys.excepthook(OSError, error, None)

    assert (launcher.wait(Raised).where, printed) == ("after", ["the log is full"])
    assert program.run.step == 0


def test_an_error_after_the_update_is_not_tried_again(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()

    def fail() -> None:
        raise ValueError("a mistake in the log")

    with pytest.raises(ValueError, match="a mistake in the log"):
        program.train(3, after=once(1, fail))
    assert program.run.step == 2


def test_a_first_view_that_was_left_while_ranks_connected_leaves_nothing_to_count_on(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh", world_size=2)

    def interrupt() -> None:
        launcher.wait(Put)
        launcher.leave(2)
        launcher.view(2, source="fresh")

    acting = threading.Thread(target=interrupt)
    acting.start()
    program = Program()
    acting.join()
    ready = launcher.wait(Ready, count=2)
    assert (ready.committed_step, ready.state) == (0, "none")
    program.train(1)
    assert program.digest() == calm(1)


def test_a_view_of_a_step_that_this_process_does_not_have_is_not_entered(launcher: FakeLauncher) -> None:
    launcher.view(1, source="memory", step=5)
    launcher.view(2, source="fresh")
    program = Program()
    assert "this process has step 0, and not 5" in launcher.wait(Ready, count=2).reason
    assert program.run.generation == 2


def test_a_view_that_wants_a_checkpoint_from_a_script_without_one_is_not_entered(launcher: FakeLauncher) -> None:
    launcher.view(1, source="checkpoint", step=5)
    launcher.view(2, source="fresh")
    with pytest.raises(StoppedError):  # what it has now is nobody's state, to begin with least of all
        Program()
    assert "this script has none" in launcher.wait(Ready, count=2).reason


def test_views_of_older_generations_are_dropped(launcher: FakeLauncher) -> None:
    launcher.view(3, source="fresh")
    program = Program()

    def interrupt() -> None:
        launcher.leave(5)
        assert program.run._member is not None
        assert program.run._member.peers.wait_for_leave(within_s=5.0)
        launcher.view(2, step=1)
        launcher.view(5, step=1)

    program.train(2, between=once(1, interrupt))
    assert program.run.generation == 5


def test_a_stop_ends_the_process_with_the_exit_code_and_the_reason_of_the_launcher(launcher: FakeLauncher) -> None:
    launcher.stop(exit_code=4)
    with pytest.raises(holdfast.StoppedError) as caught:
        Program()
    assert (caught.value.code, caught.value.reason) == (4, "a test wants it")


def test_a_spare_that_nobody_needed_ends_well(launcher: FakeLauncher) -> None:
    launcher.stop(exit_code=0)
    with pytest.raises(holdfast.StoppedError) as caught:
        Program()
    assert caught.value.code == 0


def test_a_rank_whose_launcher_is_dead_does_not_wait_for_it(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    program = Program()
    launcher.close()
    with pytest.raises(ConnectionError, match="launcher"):
        program.train(3)


def test_replicas_that_differ_end_the_job(launcher: FakeLauncher) -> None:
    launcher.view(1, source="fresh")
    member = Program().run._member
    assert member is not None
    outcome = Outcome(ready=1, mean_loss=0.0, same_step=True, same_digest=False, leaves=0)
    with pytest.raises(holdfast.DivergenceError, match="parameters of the ranks are different at step 0") as caught:
        member.agreement.judge(outcome)
    member.reporter.refuse(caught.value)
    assert launcher.wait(Fault).fatal


def test_a_divergence_that_is_found_at_the_end_of_a_recovery_ends_the_job_too(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differ(_self: object, _made: object, **_more: object) -> None:
        raise holdfast.DivergenceError("the parameters of the ranks are different")

    monkeypatch.setattr(Agreement, "confirm", differ)
    launcher.view(1, source="fresh")
    with pytest.raises(holdfast.DivergenceError):
        Program()
    assert launcher.wait(Fault).fatal


# State.


def test_state_of_an_optimizer_keeps_its_type_and_bits_when_it_is_taken_over() -> None:
    def make() -> tuple[nn.Module, torch.optim.Optimizer, TrainingState]:
        model = nn.Linear(3, 1).to(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return model, optimizer, TrainingState(model, optimizer, scheduler=None, added={})

    model, optimizer, state = make()
    for parameter in model.parameters():
        optimizer.state[parameter]["momentum_buffer"] = torch.rand(parameter.shape)
    _, newcomer, other = make()
    other.load(Flat(skeleton=read_skeleton(state.flat().skeleton_bytes), tensors=state.flat().tensors))
    own, taken = ([value["momentum_buffer"] for value in each.state.values()] for each in (optimizer, newcomer))
    assert [tensor.dtype for tensor in taken] == [torch.float32] * 2
    assert all(map(torch.equal, own, taken))


def test_state_of_another_model_is_refused() -> None:
    states = []
    for size in (1, 2):
        model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(size)])
        states.append(TrainingState(model, torch.optim.SGD(model.parameters()), scheduler=None, added={}))
    with pytest.raises(ValueError, match=r"the state is of another model: 1\.bias, 1\.weight only on one side"):
        states[0].load(states[1].flat())


@pytest.mark.parametrize(
    "make",
    [
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10),
        lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)),
        lambda optimizer: torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [torch.optim.lr_scheduler.ConstantLR(optimizer), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)],
            [2],
        ),
    ],
)
def test_state_of_torchs_schedulers_can_be_sent(make: Callable[[torch.optim.Optimizer], Any]) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = TrainingState(model, optimizer, scheduler=make(optimizer), added={})
    flat = state.flat()

    state.load(Flat(skeleton=read_skeleton(flat.skeleton_bytes), tensors=flat.tensors))

    assert state.flat().skeleton["rest"]["scheduler"] == flat.skeleton["rest"]["scheduler"]


# Digests.


def test_digests_differ_when_a_bit_does_on_the_host_and_on_a_device() -> None:
    for count in (1, 3, 4, 1000, 1003):
        one = torch.arange(count, dtype=torch.uint8)
        other = copy.deepcopy(one)
        other[count // 2] ^= 1
        assert digest_of([one]) != digest_of([other])
        assert weighted_sum(one) != weighted_sum(other)
        assert weighted_sum(one) == weighted_sum(one.clone())


def test_the_sum_on_a_device_sees_two_numbers_that_changed_places_and_takes_tensors_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = torch.rand(1000)
    whole = weighted_sum(one)
    swapped = one.clone()
    swapped[[3, 7]] = one[[7, 3]]
    assert weighted_sum(swapped) != whole
    monkeypatch.setattr("holdfast_runtime.inprocess.digest.PIECE_WORDS", 64)
    assert weighted_sum(one) == whole
    assert weighted_sum(torch.cat([torch.zeros(1, dtype=torch.uint8), one.view(torch.uint8)])[1:]) == whole
