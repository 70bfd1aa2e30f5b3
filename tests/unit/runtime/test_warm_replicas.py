"""A spare of replicas has memory for gradients and the optimizer's state before it has a rank."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fake_launcher import FakeLauncher
from torch import Tensor, nn

import holdfast_runtime as holdfast
from holdfast_runtime.control import Build, Plan, Ready, View
from holdfast_runtime.inprocess import TrainingState
from holdfast_runtime.transfer import Offer, Server, flatten

LOCAL, STEP = "127.0.0.1", 3


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLauncher]:
    with FakeLauncher.of_this_process(monkeypatch) as fake:
        yield fake


class Asking(torch.optim.Adam):
    """An optimizer that asks for more than gradients."""

    def step(self, closure: Any = None) -> Any:
        return super().step(lambda: closure().detach())


def made(kind: Callable[..., torch.optim.Optimizer] = torch.optim.Adam) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Linear(64, 64)
    return model, kind(model.parameters(), lr=0.1)


def trained(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """A peer's state after some steps."""
    for step in range(STEP):
        optimizer.zero_grad()
        model(torch.full((2, 64), float(step))).square().mean().backward()
        optimizer.step()
    state = TrainingState(model, optimizer, scheduler=None, added={})
    state.seed = 7
    return state.tree()


def state_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [value for values in optimizer.state.values() for value in values.values()]


def while_it_waits(talk: Callable[[], None], model: nn.Module, optimizer: torch.optim.Optimizer, **options: Any) -> Any:
    """Make a run, which waits for a rank, and meanwhile say what a launcher does."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            talk()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        return holdfast.Run(model, optimizer, **options)
    finally:
        thread.join()
        assert not errors, errors


def test_it_has_the_memory_while_it_waits_and_the_bits_of_a_peer_in_it_when_it_has_a_rank(
    launcher: FakeLauncher,
) -> None:
    peer = trained(*made())
    model, optimizer = made()
    server = Server(host=LOCAL, deadline_s=5.0)
    server.offer("replica", Offer(generation=1, step=STEP, state=lambda: flatten(peer)))
    before: list[int] = []

    def talk() -> None:
        assert launcher.wait(Ready).buildable == "anywhere"
        launcher.send(Build(rank=2, world_size=4, step=0))
        warm = launcher.wait(Ready, count=2)
        assert (warm.built, warm.moves, warm.state) == (2, True, "none")
        before.extend(tensor.data_ptr() for tensor in state_of(optimizer))
        plan, at = Plan(source="peer", donors=(0,)), {"hosts": (LOCAL,), "ports": (server.port,)}
        launcher.send(View(generation=1, rank=0, world_size=1, resume_step=STEP, plan=plan, **at))

    run = while_it_waits(talk, model, optimizer)
    server.close()

    assert (run.rank, run.step, run.seed) == (0, STEP, 7)
    assert [tensor.data_ptr() for tensor in state_of(optimizer)] == before
    assert len(before) == 6
    for got, right in zip(
        [*model.parameters(), *state_of(optimizer)],
        flatten({"model": peer["model"], "optimizer": peer["optimizer"]["state"]}).tensors,
        strict=True,
    ):
        assert torch.equal(got, right)


@pytest.mark.parametrize(
    ("kind", "options", "buildable", "kept"),
    [
        (torch.optim.Adam, {"warm_up": False}, "", 0),
        (Asking, {}, "anywhere", 0),
    ],
    ids=["its script does not want it", "its optimizer asks for more than gradients"],
)
def test_without_it_the_spare_waits_as_before(
    launcher: FakeLauncher, kind: Any, options: dict[str, Any], buildable: str, kept: int
) -> None:
    model, optimizer = made(kind)

    def talk() -> None:
        assert launcher.wait(Ready).buildable == buildable
        if buildable:
            launcher.send(Build(rank=0, world_size=4, step=0))
            assert launcher.wait(Ready, count=2).built == 0
        assert len(state_of(optimizer)) == kept
        launcher.view(1, source="fresh")

    assert while_it_waits(talk, model, optimizer, **options).rank == 0
