"""Lines of an ordinary loop that do not go with a step: each is refused with what to do."""

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fake_launcher import FakeLauncher
from torch import nn
from torch._C._distributed_c10d import HashStore

import holdfast_runtime as holdfast
from holdfast_runtime.control import Fault
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess import Reducer, TrainingState

Line = Callable[[torch.optim.Optimizer], object]


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLauncher]:
    with FakeLauncher.of_this_process(monkeypatch) as fake:
        yield fake


def nothing(_optimizer: torch.optim.Optimizer) -> None: ...


def trained(
    *, before: Line = nothing, after: Line = nothing, outside: Line = nothing, kind: Any = torch.optim.SGD
) -> nn.Module:
    """Train for two steps, with lines of the old loop around ``step.update``."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = kind(model.parameters(), lr=0.1)
    for step in holdfast.Run(model, optimizer).steps(2):
        with step:
            loss = model(torch.ones(2, 4)).square().mean()
            loss.backward()
            before(optimizer)
            step.update(loss)
            after(optimizer)
        outside(optimizer)
    return model


def step(optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def scaled(optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.step(optimizer)


@pytest.mark.parametrize("place", ["before", "after", "outside"])
def test_an_optimizer_step_of_the_program_is_refused_with_its_line(launcher: FakeLauncher, place: str) -> None:
    launcher.view(1, source="fresh")

    with pytest.raises(UnsupportedError) as caught:
        trained(**{place: step})

    line = step.__code__.co_firstlineno + 1
    assert str(caught.value).startswith(f"test_leftover.py:{line} calls optimizer.step()")
    assert "delete this line" in str(caught.value)
    if place != "outside":  # there the end of the program sends it
        told = launcher.wait(Fault)
        assert (told.fatal, told.reason) == (True, str(caught.value))


def test_alone_it_is_refused_too() -> None:
    with pytest.raises(UnsupportedError, match="two updates in a step"):
        trained(after=step)


def test_the_step_of_a_scaler_is_refused_with_the_way_that_works() -> None:
    with pytest.raises(UnsupportedError, match=r"calls scaler.step\(optimizer\).*delete scaler.step"):
        trained(before=scaled)


def test_gradients_that_are_clipped_before_the_reduction_are_refused_with_the_way_that_works(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Reducer.begin
    monkeypatch.setattr(Reducer, "begin", lambda self, **_: begin(self, world_size=2))
    launcher.view(1, source="fresh")

    with pytest.raises(UnsupportedError, match=r"call step.reduce\(loss\) after backward, then clip_grad_norm_"):
        trained(before=lambda chosen: nn.utils.clip_grad_norm_(chosen.param_groups[0]["params"], 0.1))

    assert launcher.wait(Fault).fatal


def test_a_loop_without_such_a_line_trains() -> None:
    before = nn.Linear(4, 1).weight
    assert not torch.equal(trained().weight, before)  # type: ignore[arg-type]


def test_a_refusal_that_ends_the_program_outside_of_steps_ends_the_job(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    launcher.view(1, source="fresh")
    model = nn.Linear(4, 1)
    run = holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))

    sys.excepthook(UnsupportedError, UnsupportedError("delete this line"), None)

    told = launcher.wait(Fault)
    assert told.reason.startswith("delete this line (test_leftover.py:")
    assert (told.fatal, run.step) == (True, 0)


def made(optimizer: Callable[..., Any], scheduler: Callable[..., Any] | None = None) -> None:
    model = nn.Linear(4, 1)
    chosen = optimizer(model.parameters(), lr=0.1)
    holdfast.Run(model, chosen, scheduler=scheduler(chosen) if scheduler is not None else None)


def test_an_optimizer_that_needs_a_closure_is_refused_before_training() -> None:
    with pytest.raises(UnsupportedError, match="the step of LBFGS needs closure"):
        made(torch.optim.LBFGS)


def test_a_scheduler_that_needs_a_metric_is_refused_before_training_with_the_way_that_works() -> None:
    with pytest.raises(UnsupportedError, match=r"its step needs metrics; give it to Run\(state="):
        made(torch.optim.SGD, torch.optim.lr_scheduler.ReduceLROnPlateau)


def test_a_scheduler_makes_no_step_need_an_argument() -> None:
    made(torch.optim.SGD, lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2))


class Gathering(torch.optim.SGD):
    """An optimizer that needs other ranks in its step, as those do that divide their work."""

    def step(self, closure: Any = None) -> Any:
        if not dist.is_initialized():  # Run makes none for a world of one
            dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
        for group in self.param_groups:
            for parameter in group["params"]:
                dist.broadcast(parameter.data, src=0)
        return super().step(closure)


def test_an_optimizer_of_replicas_that_needs_other_ranks_is_refused_in_the_first_update(
    launcher: FakeLauncher,
) -> None:
    launcher.view(1, source="fresh")
    try:
        with pytest.raises(UnsupportedError, match="the optimizer calls the collective"):
            trained(kind=Gathering)
    finally:
        dist.destroy_process_group()

    assert launcher.wait(Fault).fatal


class Wrapper(torch.optim.Optimizer):
    """As published wrappers are made: torch's own ``__init__`` is not called, and hooks are in plain dicts."""

    def __init__(self, params: Any, lr: float) -> None:
        self.inner = torch.optim.SGD(params, lr, momentum=0.9)
        self.param_groups, self.defaults, self.state = self.inner.param_groups, self.inner.defaults, {}
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}  # type: ignore[assignment]

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.inner.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> Any:
        return self.inner.step(closure)


class Around(torch.optim.Optimizer):
    """One whose own state is that of torch's base class, as that of SAM is."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})
        self.inner = torch.optim.SGD(self.param_groups, lr, momentum=0.9)

    def step(self, closure: Any = None) -> Any:
        return self.inner.step(closure)


class Whole(Wrapper):
    """One whose state is that of both, in a form of its own."""

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])


def test_an_optimizer_around_another_one_trains_and_a_step_of_the_program_is_refused() -> None:
    trained(kind=Whole)
    with pytest.raises(UnsupportedError, match="two updates in a step"):
        trained(after=step, kind=Whole)


def test_the_state_of_an_optimizer_around_another_one_goes_to_a_newcomer() -> None:
    donor, newcomer = (
        TrainingState(model, Whole(model.parameters(), lr=0.1), scheduler=None, added={})
        for model in (nn.Linear(4, 1), nn.Linear(4, 1))
    )
    for state in (donor, newcomer):
        state.model(torch.ones(2, 4)).sum().backward()
    donor.optimizer.step()

    newcomer.load(copy.deepcopy(donor.flat()))
    newcomer.reach_boundary()
    for state in (donor, newcomer):
        state.optimizer.step()

    assert torch.equal(newcomer.model.weight, donor.model.weight)  # type: ignore[arg-type]


def test_an_optimizer_around_another_one_whose_state_it_has_not_is_refused_before_training() -> None:
    with pytest.raises(UnsupportedError, match=r"Around holds SGD, whose state its state_dict\(\) does not have"):
        made(Around)
