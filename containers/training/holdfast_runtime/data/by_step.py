"""Batches of a loader by the number of the step, so that a step that is repeated has the same again."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")


class ByStep(Generic[T]):
    """
    Batches of an iterator as a function of the step.

    A process that takes over a rank draws all batches before its first one: for a loader that has long epochs use
    ``Dataset``, which computes a batch from the step.

    Batches have random numbers of their own, seeded with the number of the epoch: what a loader draws for an order, an
    augmentation or its workers is the same for a newcomer, and changes none of the program's. Generators of a loader,
    of its samplers and of its data set begin again with the batches, where training goes back to earlier steps.

    Args:
        epoch: Returns the batches of an epoch for this rank, the same ones for the same number (``set_epoch`` of a
            sampler).

    Raises:
        ValueError: an epoch has no batch.
    """

    def __init__(self, epoch: Callable[[int], Iterable[T]]) -> None:
        self._make = epoch
        self._generators: list[tuple[Any, Any]] = []
        """Those of the loader, each with its first state."""
        self._begin()

    def __call__(self, step: int) -> T:
        if step < self._at:
            self._begin()
        while self._at < step:
            with self._own_numbers():
                self._batch = next(self._batches)
            self._at += 1
        return self._batch

    def _begin(self) -> None:
        self._at = -1
        for generator, state in self._generators:
            generator.load_state_dict(state)
        self._states = _states()  # the first epoch sets them
        self._batches = self._all()

    def _all(self) -> Iterator[T]:
        number = 0
        while True:
            before = self._at
            _seed(number)
            epoch = self._make(number)
            self._generators = self._generators or [(own, own.state_dict()) for own in _generators_of(epoch)]
            yield from epoch
            if self._at == before:
                raise ValueError(f"epoch {number} has no batch; allowed: one or more")
            number += 1

    @contextmanager
    def _own_numbers(self) -> Iterator[None]:
        """Keep the random numbers of the program apart from those of the batches."""
        outside = _states()
        _set(self._states)
        try:
            yield
        finally:
            self._states = _states()
            _set(outside)


def _generators_of(loader: object) -> Iterator[Any]:
    """Yield the states of generators that a loader of torch, its samplers and its data set hold."""
    from holdfast_runtime.state import AnyGenerator, GeneratorState

    parts, seen = [loader], {id(loader)}  # a sampler and a data set may hold each other
    while parts:
        for name, value in getattr(parts.pop(), "__dict__", {}).items():
            if isinstance(value, AnyGenerator):
                yield GeneratorState(value)
            elif name in ("dataset", "sampler", "batch_sampler") and id(value) not in seen:
                seen.add(id(value))
                parts.append(value)


def _seed(number: int) -> None:
    import torch  # here, as machines that build token files do not have it

    torch.default_generator.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def _states() -> dict[str, Any]:
    from holdfast_runtime.state import random_states

    return random_states()


def _set(states: dict[str, Any]) -> None:
    from holdfast_runtime.state import set_random_states

    set_random_states(states)
