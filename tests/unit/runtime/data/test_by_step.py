"""Batches of a loader by step: again for a repeated step, from the middle for a newcomer, over several epochs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, Subset, TensorDataset

from holdfast_runtime.data import ByStep


def epoch(number: int) -> Iterator[str]:
    """Three batches, in an order of its own."""
    return iter([f"{number}.{place}" for place in sorted(range(3), key=lambda place: (place + number) % 3)])


RIGHT = ["0.0", "0.1", "0.2", "1.2", "1.0", "1.1", "2.1"]


def test_each_step_has_its_batch_over_epochs() -> None:
    batches = ByStep(epoch)
    assert [batches(step) for step in range(7)] == RIGHT


def test_a_repeated_step_has_the_same_batch_and_a_newcomer_begins_with_any() -> None:
    batches = ByStep(epoch)
    assert [batches(step) for step in (4, 4, 5, 5, 6)] == [RIGHT[step] for step in (4, 4, 5, 5, 6)]


def test_steps_that_are_lost_are_gone_back_to() -> None:
    batches = ByStep(epoch)
    assert [batches(step) for step in (6, 3, 4)] == [RIGHT[step] for step in (6, 3, 4)]


def test_an_epoch_without_batches_is_refused() -> None:
    with pytest.raises(ValueError, match="epoch 0 has no batch"):
        ByStep(lambda _number: [])(0)


def test_a_loader_draws_the_same_for_a_newcomer_and_nothing_of_the_program() -> None:
    data = TensorDataset(torch.arange(12))
    shuffled, newcomer = (ByStep(lambda _number: DataLoader(data, 4, shuffle=True)) for _ in range(2))
    torch.manual_seed(5)
    first = [shuffled(step)[0].tolist() for step in range(7)]
    drawn = torch.rand(1)

    torch.manual_seed(6)
    assert newcomer(6)[0].tolist() == first[6]
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), drawn)
    assert first[:3] != first[3:6]


class Noisy(TensorDataset):
    """One that augments by a generator of its own."""

    def __init__(self) -> None:
        super().__init__(torch.arange(12))
        self.noise = np.random.default_rng(3)
        self.sampler: Any = None

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        return (super().__getitem__(index)[0] + self.noise.random(),)


@pytest.mark.parametrize("of", ["the loader", "the sampler", "the data set"])
def test_a_generator_of_the_loader_begins_again_where_training_goes_back(of: str) -> None:
    data = TensorDataset(torch.arange(12))

    def made() -> ByStep[list[torch.Tensor]]:
        own = torch.Generator().manual_seed(3)
        if of == "the data set":
            loader = DataLoader(Subset(Noisy(), range(12)), 4)
        elif of == "the loader":
            loader = DataLoader(data, 4, shuffle=True, generator=own)
        else:
            loader = DataLoader(data, 4, sampler=RandomSampler(data, generator=own))
        return ByStep(lambda _number: loader)

    survivor, newcomer = made(), made()
    first = [survivor(step)[0].tolist() for step in range(7)]

    assert [survivor(step)[0].tolist() for step in (1, 2, 3, 4)] == first[1:5]
    assert newcomer(4)[0].tolist() == first[4]


@pytest.mark.timeout(30)
def test_a_sampler_and_a_data_set_may_hold_each_other() -> None:
    data = Noisy()
    sampler: Any = RandomSampler(data, generator=torch.Generator().manual_seed(3))
    sampler.dataset, data.sampler = data, sampler
    batches = ByStep(lambda _number: DataLoader(data, 4, sampler=sampler))
    first = [batches(step)[0].tolist() for step in range(3)]
    assert [batches(step)[0].tolist() for step in (1, 2)] == first[1:]
