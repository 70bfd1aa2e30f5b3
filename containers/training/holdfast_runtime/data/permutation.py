"""
A shuffle that is computed, not stored: where index i goes in a random order of n, without the other n - 1.

A Feistel network over pairs (i // b, i % b) with a * b a little above n; what falls outside 0 to n - 1 goes through
again until it is inside (cycle walking; at most about one in sqrt(n) does). That is a bijection for every key. It is
made for shuffling training data, not for secrets.
"""

import hashlib
from math import isqrt

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.uint64]

_ROUNDS = 8
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(values: Indices) -> Indices:
    """Spread every input bit over all 64 (the finalizer of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * _MULTIPLIER_1
    values = (values ^ (values >> np.uint64(27))) * _MULTIPLIER_2
    return values ^ (values >> np.uint64(31))


class Permutation:
    """
    Random orders of 0 to n - 1, one for each tweak.

    Args:
        n: how many, 1 to 2**62.
        key: names the family of orders, such as the seed and the source.
    """

    def __init__(self, n: int, *key: object) -> None:
        if not 0 < n <= 2**62:
            raise ValueError(f"a permutation needs 1 to 2**62 elements, got {n}")
        self.n = n
        high = isqrt(n - 1) + 1
        self._low = np.uint64(-(-n // high))
        self._high = np.uint64(high)
        digest = hashlib.blake2b(repr(key).encode(), digest_size=64).digest()
        self._keys = np.frombuffer(digest, dtype="<u8", count=_ROUNDS)

    def __call__(self, indices: Indices, tweaks: Indices) -> Indices:
        spread = mix(tweaks * _GOLDEN + _GOLDEN)
        keys = [mix(spread ^ key) for key in self._keys]
        result = self._once(indices, keys)
        outside = np.flatnonzero(result >= self.n)
        while outside.size:
            result[outside] = self._once(result[outside], [key[outside] for key in keys])
            outside = outside[result[outside] >= self.n]
        return result

    def _once(self, indices: Indices, keys: list[Indices]) -> Indices:
        high, low = indices // self._low, indices % self._low
        for one, other in zip(keys[::2], keys[1::2], strict=True):
            high = (high + mix(low ^ one) % self._high) % self._high
            low = (low + mix(high ^ other) % self._low) % self._low
        return high * self._low + low
