"""
Source and sample of sample number g of the training run, computed for any g alone.

Weights become whole numbers w with sum W. Every block of W consecutive samples has exactly w of each source, in an
order shuffled anew for each block, and takes the next w samples of that source's own order. So the proportions are
exact after every W samples, not on average, and counting back from sample 0 is a multiplication.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from holdfast_runtime.data.format import DataError
from holdfast_runtime.data.permutation import Indices, Permutation

BLOCK_LIMIT = 1 << 20


def whole_weights(weights: Sequence[float]) -> tuple[int, ...]:
    """The smallest whole numbers in exactly these proportions, as they are written in decimal."""
    if not weights or any(not 0 < weight < float("inf") for weight in weights):
        raise DataError(f"weights must be positive numbers, got {list(weights)}")
    fractions = [Fraction(str(weight)) for weight in weights]
    common = lcm(*(item.denominator for item in fractions))
    numbers = [int(item * common) for item in fractions]
    numbers = [number // gcd(*numbers) for number in numbers]
    if sum(numbers) > BLOCK_LIMIT:
        raise DataError(
            f"weights {list(weights)} are exact only after {sum(numbers)} samples, and the limit is {BLOCK_LIMIT}; "
            "write them with fewer digits"
        )
    return tuple(numbers)


@dataclass(frozen=True)
class Draws:
    """Sources and turns of a run of sample numbers; one entry for each."""

    sources: npt.NDArray[np.int64]
    """Number of the source."""
    turns: Indices
    """How many samples of that source come before it."""


class Mixture:
    """
    The order of the sources.

    Args:
        weights: of each source.
        key: of the shuffle inside blocks.
    """

    def __init__(self, weights: Sequence[float], *key: object) -> None:
        self.weights = whole_weights(weights)
        self.block = sum(self.weights)
        self._shuffle = Permutation(self.block, *key, "mixture")
        self._source = np.repeat(np.arange(len(self.weights)), self.weights)
        self._weight = np.array(self.weights, dtype=np.uint64)
        self._ordinal = np.concatenate([np.arange(weight, dtype=np.uint64) for weight in self.weights])

    def draws(self, samples: Indices) -> Draws:
        """Source and turn of each sample number."""
        block = samples // np.uint64(self.block)
        slot = self._shuffle(samples % np.uint64(self.block), block)
        source = self._source[slot]
        return Draws(source, block * self._weight[source] + self._ordinal[slot])
