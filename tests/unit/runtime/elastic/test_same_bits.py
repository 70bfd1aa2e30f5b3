"""What makes a step the same at any size: each logical rank once, and a norm that no cut changes."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_runtime.elastic import Rounds, elastic_asked, exact_norm
from holdfast_runtime.groups import UnsupportedError


def never(_work: Any) -> None:
    raise AssertionError("one rank needs no collective")


@given(logical=st.integers(1, 40), size=st.integers(1, 40))
def test_each_logical_rank_is_added_once_and_in_order(logical: int, size: int) -> None:
    rounds, order = [Rounds(logical) for _ in range(size)], []
    for rank, each in enumerate(rounds):
        each.begin(rank=rank, size=size)
    for number in range(rounds[0].count):
        for each in rounds:
            each.number = number
        assert {each.present for each in rounds} == {sum(each.counts for each in rounds)}
        order += [each.mine for each in rounds if each.counts]

    assert order == list(range(logical))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_gradients_are_added_in_the_order_of_logical_ranks_at_any_size(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another order these four have another sum."""
    given, rounds, total = torch.tensor([1e8, 1.0, -1e8, 1.0]), Rounds(4), torch.zeros(1)
    rounds.begin(rank=0, size=size)
    added = rounds.reduce_scatter()

    def all_ranks(arrived: torch.Tensor, _sent: torch.Tensor, group: Any) -> None:
        first = rounds.number * size
        arrived.copy_(torch.tensor([float(given[min(first + rank, 3)]) for rank in range(size)]))

    monkeypatch.setattr(torch.distributed, "all_to_all_single", all_ranks)
    for number in range(rounds.count):
        rounds.number = number
        added(total, torch.zeros(size), None, None)

    assert total.item() == 1.0


def test_the_mean_loss_is_added_in_the_order_of_logical_ranks() -> None:
    rounds = Rounds(3)
    rounds.begin(rank=0, size=1)
    for rounds.number, loss in enumerate((0.1, 0.2, 0.3)):
        rounds.note(loss)
    rounds.done = True

    assert rounds.mean_loss(wait=never) == (0.1 + 0.2 + 0.3) / 3


def test_the_mean_loss_has_the_same_bits_with_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.sum", math.fsum)  # as Python 3.12 and newer add, here also on older ones

    test_the_mean_loss_is_added_in_the_order_of_logical_ranks()


def test_a_step_that_leaves_logical_ranks_out_is_an_error_of_the_script() -> None:
    rounds = Rounds(3)
    rounds.begin(rank=0, size=1)

    with pytest.raises(RuntimeError, match=r"for part in step\.parts\(\)"):
        rounds.mean_loss(wait=never)


@settings(deadline=None)
@given(
    seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 500), max_size=6), scale=st.sampled_from([1e-8, 1.0, 1e9])
)
def test_the_norm_is_the_same_however_the_numbers_are_divided(seed: int, cuts: list[int], scale: float) -> None:
    numbers = scale * torch.randn(500, generator=torch.Generator().manual_seed(seed))
    places = [0, *sorted(cuts), 500]
    parts = [numbers[first:last] for first, last in itertools.pairwise(places)]

    found = exact_norm(parts, size=1, wait=never)

    assert found == exact_norm([numbers], size=1, wait=never)
    assert found == pytest.approx(float(numbers.double().norm()), rel=1e-12)


def test_the_norm_of_nothing_is_0_and_of_what_is_no_number_is_none() -> None:
    assert exact_norm([torch.zeros(3), torch.zeros(0)], size=1, wait=never) == 0.0
    assert not torch.isfinite(torch.tensor(exact_norm([torch.tensor([1.0, float("inf")])], size=1, wait=never)))


@pytest.mark.parametrize(
    ("elastic", "sizes", "message"),
    [
        (None, (2, 4), "Run does not say what stays the same then"),
        (3, (2, 4), "elastic is 3 logical ranks, and the job may have 4 ranks; allowed: 4 or more"),
        (0, (), "elastic is 0; allowed: a number of logical ranks"),
        ("logical", (), "elastic is 'logical'; allowed: a number of logical ranks"),
    ],
)
def test_what_run_may_say_of_sizes(elastic: Any, sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        elastic_asked(elastic, sizes=sizes)
