"""States of random generators of torch, NumPy and Python, in types that a file of plain values may hold."""

import random
from typing import Any

import numpy as np
import torch

from holdfast_runtime.state.values import copied, put_back

AnyGenerator = torch.Generator | np.random.Generator | np.random.RandomState | random.Random


class GeneratorState:
    """State of a generator that the program has made, for ``Run(state=)``."""

    def __init__(self, generator: AnyGenerator) -> None:
        self.generator = generator

    def state_dict(self) -> dict[str, Any]:
        return dict(copied(self.generator))

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        put_back(self.generator, state)


def random_states() -> dict[str, Any]:
    """Return those of the default generators of the host."""
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": (name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), position, has_gauss, cached),
    }


def set_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
