"""Attributes of an optimizer that torch does not have, such as a count of its steps."""

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from holdfast_runtime.state.values import NotKeptError, copied, equal, put_back

TORCHS = frozenset(vars(torch.optim.SGD([nn.Parameter(torch.empty(0))], lr=0.0))) | {"_opt_called", "step"}
"""Those of torch; its schedulers set the last two."""
LARGE_BYTES = 1 << 16


class OptimizerAttributes:
    """Of one optimizer, whose update changes them; those of ``Run`` are the baseline."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._values = vars(optimizer)
        self._baseline = self._read()

    def note(self) -> dict[str, Any]:
        """Return copies of those that a loop may change around a step: tensors of 64 KiB and more are of the update."""
        return self._read(most_bytes=LARGE_BYTES)

    def changes(self) -> dict[str, Any]:
        """Return those that are not as in the baseline."""
        before = self._baseline
        return {key: value for key, value in self._read().items() if key not in before or not equal(value, before[key])}

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Have the baseline, with changes of another process."""
        self._put({**self._baseline, **changes}, now=self._read())

    def restore(self, noted: Mapping[str, Any]) -> None:
        self._put(noted, now=self.note())

    def _put(self, values: Mapping[str, Any], *, now: Mapping[str, Any]) -> None:
        for key in now.keys() - values.keys():
            del self._values[key]
        for key, value in values.items():
            self._values[key] = put_back(self._values.get(key), value)

    def _read(self, *, most_bytes: float = float("inf")) -> dict[str, Any]:
        found = {}
        for key in sorted(self._values.keys() - TORCHS):  # ranks compare them in this order
            value = self._values[key]
            if isinstance(value, Tensor) and value.nbytes >= most_bytes:
                continue
            with contextlib.suppress(NotKeptError):
                found[key] = copied(value)
        return found


def inner_optimizers(optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
    """Return the optimizers that this one holds, with state of their own."""
    values = (value if isinstance(value, list | tuple) else [value] for value in vars(optimizer).values())
    items = itertools.chain.from_iterable(values)
    return [item for item in items if isinstance(item, torch.optim.Optimizer) and item.state is not optimizer.state]
