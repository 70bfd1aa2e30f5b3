"""A step that is repeated with other data is noticed; one with the same data, or another step, is not."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
import torch
from fake_launcher import FakeLauncher
from torch import Tensor, nn

import holdfast_runtime as holdfast
from holdfast_runtime.control import Fault
from holdfast_runtime.inprocess import SameBatch

PLACE = (0, 2)


def batch(number: int) -> Tensor:
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(number))


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLauncher]:
    with FakeLauncher.of_this_process(monkeypatch) as fake:
        yield fake


def trained(launcher: FakeLauncher, data: Callable[[int], Tensor]) -> int:
    """Train for four steps; the third is left once after its forward."""
    launcher.view(1, source="fresh")
    model = nn.Linear(4, 1)
    run = holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))
    left = False
    for step in run.steps(4):
        with step:
            loss = model(data(step.number)).square().mean()
            if step.number == 2 and not left:
                left = True
                launcher.leave(2)
                member = run._member
                assert member is not None
                assert member.peers.wait_for_leave(within_s=5.0)
                launcher.view(2, step=2)
                member.peers.check()
            loss.backward()
            step.update(loss)
    return run.step


def test_data_of_an_iterator_end_the_job_when_a_step_is_repeated(launcher: FakeLauncher) -> None:
    numbers = iter(range(100))

    with pytest.raises(holdfast.DivergenceError, match=r"step 2 is repeated, and its model has other inputs"):
        trained(launcher, lambda _step: batch(next(numbers)))

    assert launcher.wait(Fault).fatal


def test_data_that_are_a_function_of_the_step_do_not(launcher: FakeLauncher) -> None:
    assert trained(launcher, batch) == 4


def test_another_loss_of_a_repeated_step_is_noticed_also_where_the_model_is_not_called_itself() -> None:
    same = SameBatch()
    same.begin(3, PLACE)
    same.note_loss(1.0)
    same.begin(3, PLACE)
    same.note_loss(1.0 + 1e-6)
    same.begin(3, PLACE)
    with pytest.raises(holdfast.DivergenceError, match="this rank's loss is 2, and was 1"):
        same.note_loss(2.0)


def test_on_a_cpu_a_loss_that_is_slightly_another_is_noticed() -> None:
    for near, raises in ((1e-5, pytest.raises(holdfast.DivergenceError)), (1e-2, contextlib.nullcontext())):
        same = SameBatch(near=near)
        for loss in (3.47167, 3.47175):
            same.begin(0, PLACE)
            with raises if loss > 3.4717 else contextlib.nullcontext():
                same.note_loss(loss)


def test_a_hidden_state_that_goes_on_is_noticed_inside_of_what_the_model_gets() -> None:
    same, hidden = SameBatch(), (torch.zeros(2), torch.zeros(2))
    same.begin(0, PLACE)
    same.see((batch(0), hidden), {})
    same.begin(0, PLACE)
    with pytest.raises(holdfast.DivergenceError, match="its model has other inputs"):
        same.see((batch(0), (hidden[0], hidden[1] + 1)), {})


@pytest.mark.parametrize(("number", "place"), [(4, PLACE), (3, (1, 2)), (3, (0, 4))], ids=str)
def test_another_step_or_another_part_of_the_batch_may_have_other_data(number: int, place: tuple[int, int]) -> None:
    same = SameBatch()
    for seed, begun in enumerate(((3, PLACE), (number, place))):
        same.begin(*begun)
        same.see((batch(seed),), {})
        same.note_loss(float(seed))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(600),
        torch.randn(3, 5).t(),
        torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),
        torch.tensor([float("nan"), 1.0]),
        torch.zeros(0),
    ],
    ids=["numbers", "transposed", "channels last", "not a number", "empty"],
)
def test_equal_inputs_of_any_kind_are_equal_and_others_are_not(tensor: Tensor) -> None:
    same = SameBatch()
    for _ in range(2):
        same.begin(0, PLACE)
        same.see((), {"x": tensor})
    if tensor.numel():
        same.begin(0, PLACE)
        with pytest.raises(holdfast.DivergenceError):
            same.see((), {"x": tensor + 1})
