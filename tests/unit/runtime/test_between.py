"""Work between two steps that all ranks repeat together, and collectives outside of steps, under a launcher that the
test plays."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fake_launcher import FakeLauncher
from torch import nn

import holdfast_runtime as holdfast
from holdfast_runtime.control import Fault, Finished, Leave, Raised, Ready
from holdfast_runtime.inprocess import BrokenError, StoppedError

QUICK = (
    '{"beat": 0.1, "heartbeat": 0.5, "leave": 0.6, "ready": 0.7, "minority": 3, "view": 4, "connect": 5, '
    '"transfer": 6, "start": 9, "progress": 5, "stop": 1}'
)


PAIR = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553]"


class Counter:
    """State of a script that its work between two steps changes."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class Program:
    def __init__(self) -> None:
        torch.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.counter = Counter()
        self.run = holdfast.Run(self.model, self.optimizer, state={"counter": self.counter})
        self.seen: list[tuple[int, int, float]] = []
        """Updates, the counter and a value of the model, at each call between two steps."""

    def validate(self, finished: int) -> None:
        self.counter.count += 1
        value = self.model(torch.ones(1, 4)).sum().item()
        self.seen.append((finished, self.counter.count, value))
        self.optimizer.param_groups[0]["lr"] *= 0.9

    def train(self, total: int, *, between: Callable[[int], object] | None = None) -> None:
        for step in self.run.steps(total, between=between or self.validate):
            with step:
                loss = self.model(torch.ones(2, 4)).square().mean()
                loss.backward()
                step.update(loss)

    def facts(self) -> list[Any]:
        return [
            self.counter.count,
            self.optimizer.param_groups[0]["lr"],
            *(parameter.tolist() for parameter in self.model.parameters()),
        ]


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLauncher]:
    monkeypatch.setenv("HOLDFAST_DEADLINES", QUICK)
    with FakeLauncher.of_this_process(monkeypatch) as fake:
        fake.view(1, source="fresh")
        yield fake


def calm(*totals: int) -> Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_CONTROL_FD", raising=False)
        program = Program()
    for total in totals:
        program.train(total)
    return program


def broken(program: Program, launcher: FakeLauncher, *, at: int, late: bool) -> Callable[[int], None]:
    """A validation in which a peer is lost once: before or after it has done its work."""
    left = [at]

    def validate(finished: int) -> None:
        breaks = finished in left
        if late or not breaks:
            program.validate(finished)
        if breaks:
            left.clear()
            program.counter.count += 10
            program.model.eval()
            torch.rand(3)
            launcher.view(2, step=finished)
            raise BrokenError("rank 1 is lost")

    return validate


def test_it_runs_after_each_update_and_after_the_last_one_of_each_loop() -> None:
    program = calm(2, 3)

    assert [(finished, count) for finished, count, _ in program.seen] == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("at", [1, 3], ids=["between two steps", "after the last step"])
@pytest.mark.parametrize("late", [False, True], ids=["at its start", "at its end"])
def test_it_is_repeated_with_the_state_of_before_where_a_rank_is_lost_in_it(
    launcher: FakeLauncher, at: int, late: bool
) -> None:
    expected, program = calm(3), Program()

    program.train(3, between=broken(program, launcher, at=at, late=late))

    assert program.run.generation == 2
    assert program.facts() == expected.facts()
    repeated = [entry for entry in program.seen if entry[0] == at]
    assert program.seen[-1] == expected.seen[-1]
    assert repeated == [expected.seen[at - 1]] * (2 if late else 1)


def test_it_is_repeated_where_a_rank_is_lost_in_the_step_behind_it(launcher: FakeLauncher) -> None:
    expected, program, left = calm(3), Program(), [1]
    for step in program.run.steps(3, between=program.validate):
        with step:
            loss = program.model(torch.ones(2, 4)).square().mean()
            loss.backward()
            if step.number in left:
                left.clear()
                launcher.view(2, step=1)
                raise BrokenError("rank 1 is lost")
            step.update(loss)

    assert [finished for finished, *_ in program.seen] == [1, 1, 2, 3]
    assert program.seen[1:] == expected.seen
    assert program.facts() == expected.facts()


def test_what_ended_a_loop_is_not_repeated_in_the_next_one(launcher: FakeLauncher) -> None:
    program, left = Program(), [2]
    program.train(2)
    program.counter.count += 100  # stands between two epochs
    for step in program.run.steps(3, between=program.validate):
        with step:
            loss = program.model(torch.ones(2, 4)).square().mean()
            loss.backward()
            if step.number in left:
                left.clear()
                launcher.view(2, step=2)
                raise BrokenError("rank 1 is lost")
            step.update(loss)

    assert [(finished, count) for finished, count, _ in program.seen] == [(1, 1), (2, 2), (3, 103)]


def test_a_model_that_it_uses_reports_the_loss_of_a_rank_without_a_collective(launcher: FakeLauncher) -> None:
    program, left = Program(), [1]

    def validate(finished: int) -> None:
        if finished in left:
            left.clear()
            launcher.leave(2)
            launcher.view(2, step=1)
            while True:  # it would run for minutes
                program.model(torch.ones(1, 4))
        program.validate(finished)

    program.train(2, between=validate)

    assert program.run.generation == 2
    assert [finished for finished, *_ in program.seen] == [1, 2]


def test_weights_that_it_swaps_are_put_back_from_its_second_call_on(launcher: FakeLauncher) -> None:
    program, left = Program(), [2]

    def validate(finished: int) -> None:
        kept = [parameter.detach().clone() for parameter in program.model.parameters()]
        with torch.no_grad():
            for parameter in program.model.parameters():
                parameter.zero_()
            if finished in left:
                left.clear()
                launcher.view(2, step=2)
                raise BrokenError("rank 1 is lost")
            for parameter, value in zip(program.model.parameters(), kept, strict=True):
                parameter.copy_(value)

    program.train(3, between=validate)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HOLDFAST_CONTROL_FD")
        expected = Program()
    expected.train(3, between=lambda _finished: None)
    assert program.facts() == expected.facts()


def test_its_own_exception_is_tried_again_and_is_the_program_s(launcher: FakeLauncher) -> None:
    program = Program()

    def validate(_finished: int) -> None:
        launcher.stop()
        raise ValueError("no such metric")

    with pytest.raises(StoppedError):
        program.train(2, between=validate)

    raised = launcher.wait(Raised)
    assert (raised.where, raised.step) == ("step", 1)
    assert "no such metric" in raised.what


def test_a_collective_outside_of_steps_that_a_lost_peer_ends_is_not_charged_to_the_program(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    program = Program()
    program.train(1)
    launcher.leave(2)

    sys.excepthook(RuntimeError, RuntimeError("Connection closed by peer [127.0.0.1]:1"), None)

    assert launcher.wait(Raised).where == "outside"


@pytest.mark.parametrize(
    ("error", "is_charged"),
    [
        (RuntimeError(f"{PAIR} Read error [127.0.0.1]:1: Connection reset by peer"), False),
        (ConnectionResetError(104, "Connection reset by peer"), True),
    ],
    ids=["of a collective", "of the program's own"],
)
def test_a_connection_that_ends_before_the_launcher_reports_the_loss_is_not_charged_to_the_program(
    launcher: FakeLauncher, error: Exception, is_charged: bool
) -> None:
    program, left = Program(), [1]
    for step in program.run.steps(2):
        with step:
            loss = program.model(torch.ones(2, 4)).square().mean()
            loss.backward()
            if step.number in left:
                left.clear()
                launcher.view(2, step=1)
                raise error
            step.update(loss)

    launcher.wait(Finished)
    told = [each for each in launcher.said if isinstance(each, Raised | Fault)]
    assert [type(each) for each in told] == [Raised if is_charged else Fault]
    assert is_charged or told[0] == Fault(reason=f"BrokenError: {error}")


def test_a_collective_behind_the_loop_that_a_lost_peer_ends_is_printed_by_the_launcher_alone(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: printed.append(kind))
    program = Program()
    program.train(1)

    sys.excepthook(RuntimeError, RuntimeError(f"{PAIR} Connection closed by peer [127.0.0.1]:1"), None)
    assert launcher.wait(Raised).where == "outside"
    sys.excepthook(ValueError, ValueError("no such metric"), None)

    assert launcher.wait(Raised, count=2).where == "after"
    assert printed == [ValueError]


@pytest.mark.parametrize(
    ("reason", "is_named"),
    [
        ("rank 0 has made no progress for 13.0 s in phase other of step 1; rank 1 waits", True),
        ("a rank of another node hangs: rank 1 waits for it since 13.0 s in phase between of step 1", True),
        ("rank 1 has made no progress for 13.0 s in phase other of step 1", False),
        ("rank 1 of node 0 is lost: it was killed by SIGKILL", False),
    ],
)
def test_a_collective_between_two_steps_that_others_do_not_take_part_in_is_named_by_its_line(
    launcher: FakeLauncher, reason: str, is_named: bool
) -> None:
    program, left = Program(), [1]

    def validate(finished: int) -> None:
        if finished in left:
            left.clear()
            launcher.send(Leave(generation=2, reason=reason))
            launcher.view(2, step=1)
            assert program.run._member is not None
            assert program.run._member.peers.wait_for_leave(within_s=5.0)
            raise RuntimeError(f"{PAIR} Connection closed by peer [127.0.0.1]:1")
        program.validate(finished)

    program.train(2, between=validate)

    assert [finished for finished, *_ in program.seen] == [1, 2]
    launcher.wait(Finished)
    raised = [each for each in launcher.said if isinstance(each, Raised)]
    assert [(each.where, "in validate" in each.what) for each in raised] == [("outside", True)] * is_named


def test_weights_that_are_swapped_for_the_first_time_when_a_rank_is_lost_are_named(launcher: FakeLauncher) -> None:
    program = Program()

    def validate(_finished: int) -> None:
        with torch.no_grad():
            next(program.model.parameters()).zero_()
        launcher.leave(2)
        launcher.stop()
        raise BrokenError("rank 1 is lost")

    with pytest.raises(StoppedError):
        program.train(2, between=validate)

    ready = launcher.wait(Ready, count=2)
    assert ready.state == "torn"
    assert ready.torn.startswith("parameter 0.weight was changed outside of an update for the first time")


def left_once(program: Program, launcher: FakeLauncher, use: Callable[[holdfast.Step], object]) -> list[object]:
    """Use each of two steps behind it; the second one is left once."""
    found: list[object] = []
    left = [1]
    for step in program.run.steps(2):
        with step:
            loss = program.model(torch.ones(2, 4)).square().mean()
            loss.backward()
            step.reduce(loss)
            if step.number in left:
                left.clear()
                launcher.view(2, step=1)
                raise BrokenError("rank 1 is lost")
            step.update()
        found.append(use(step))
    return found


def test_the_loss_of_a_step_that_was_left_is_printed_without_one(launcher: FakeLauncher) -> None:
    found = left_once(Program(), launcher, lambda step: f"{step.loss:.4f}")

    assert found[1] == "nan"
    assert "nan" not in (found[0], found[2])


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda step: step.loss < 3.0, id="a decision"),
        pytest.param(lambda step: 0.9 + step.loss, id="an average"),
        pytest.param(lambda step: sum([step.loss]), id="a sum"),
    ],
)
def test_the_loss_of_a_step_that_was_left_is_refused_where_training_would_follow_from_it(
    launcher: FakeLauncher, use: Callable[[holdfast.Step], object]
) -> None:
    with pytest.raises(RuntimeError, match=r"step 1 has no loss: .* under `if step.done:`"):
        left_once(Program(), launcher, use)


def test_the_loss_of_a_step_that_is_done_is_a_number(launcher: FakeLauncher) -> None:
    found = left_once(Program(), launcher, lambda step: step.loss + 1.0 if step.done else None)

    assert [isinstance(value, float) for value in found] == [True, False, True]
