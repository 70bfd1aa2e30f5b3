"""Batches of a loader by the number of the step, so that a step that is repeated has the same again."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class ByStep(Generic[T]):
    """
    Batches of an iterator as a function of the step.

    A process that takes over a rank draws all batches before its first one: for a loader that has long epochs use
    ``Dataset``, which computes a batch from the step.

    Args:
        epoch: Returns the batches of an epoch for this rank, the same ones for the same number (``set_epoch`` of a
            sampler, a generator with that seed).

    Raises:
        ValueError: an epoch has no batch.
    """

    def __init__(self, epoch: Callable[[int], Iterable[T]]) -> None:
        self._make = epoch
        self._begin()

    def __call__(self, step: int) -> T:
        if step < self._at:
            self._begin()
        while self._at < step:
            self._batch = next(self._batches)
            self._at += 1
        return self._batch

    def _begin(self) -> None:
        self._at = -1
        self._batches = self._all()

    def _all(self) -> Iterator[T]:
        number = 0
        while True:
            before = self._at
            yield from self._make(number)
            if self._at == before:
                raise ValueError(f"epoch {number} has no batch; allowed: one or more")
            number += 1
