"""Variables of the program that its loop has changed, and that a process with a lost rank has as at its start."""

import logging
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess.errors import is_library
from holdfast_runtime.state import AnyGenerator, generator_state

_LOG = logging.getLogger(__name__)
KINDS = (bool, int, float, str, type(None))
STATEFUL = nn.Module | torch.optim.Optimizer | torch.amp.GradScaler | AnyGenerator
LONGEST = 60
SHOWN = 5
Values = Mapping[str, str]
"""Variables as text, by name."""


class Variables:
    """
    Variables of the program around the loop. They are compared in a recovery, and only a line is logged.

    Args:
        kept: Returns the objects whose state each process has. Default: none.
    """

    def __init__(self, kept: Callable[[], Iterable[object]] = tuple) -> None:
        self.of_others: Sequence[Values] = ()
        """Those that each rank had changed when the generation began."""
        self._kept = kept
        self._first: Values | None = None

    def begin(self) -> None:
        """The program is about to begin a step. Before the first one here, log what other ranks have changed."""
        if self._first is not None:
            return
        self._first = of_program(self._kept())
        if found := missed(self._first, self.of_others):
            _LOG.warning(
                "this process has taken over a rank, and variables that the loop has changed are as at its start: %s; "
                "give what decides about training to Run(state=...)",
                "; ".join(found[:SHOWN]),
            )

    def changed(self) -> Values:
        """Return what the loop has changed; nothing for a process that has begun no step."""
        first = self._first
        if first is None:
            return {}
        return {name: value for name, value in of_program(self._kept()).items() if first.get(name, value) != value}


def missed(own: Values, changed: Sequence[Values]) -> list[str]:
    """Return variables with their values, where all ranks that have changed one agree, and this one has another."""
    values = {name: {each[name] for each in changed if name in each} for each in changed for name in each}
    return [
        f"{name} is {own[name]}, and {next(iter(found))} on the other ranks"
        for name, found in values.items()
        if len(found) == 1 and name in own and own[name] not in found
    ]


def of_program(kept: Iterable[object]) -> dict[str, str]:
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    own: set[int] = set()
    for item in kept:  # an object of state= may hold the one that the program has a name for
        parts = (
            [*item.modules(), *_tensors(item)]
            if isinstance(item, nn.Module)
            else getattr(item, "__dict__", {}).values()
        )
        own |= {id(item), *map(id, parts)}
    texts = {
        name: repr(value) if type(value) in KINDS else _text(value, own)
        for name, value in [*frame.f_locals.items()]
        if type(value) in KINDS or (isinstance(value, STATEFUL) and id(value) not in own)
    }
    return {name: text for name, text in texts.items() if not name.startswith("_") and len(text) <= LONGEST}


def _text(value: Any, own: set[int]) -> str:
    """Return what changes with an object's state, alike on all ranks: of tensors the first numbers."""
    kind = type(value).__name__
    if (state := generator_state(value)) is not None:
        data = state.numpy().tobytes() if isinstance(state, Tensor) else repr(state).encode()
        return f"{kind} with state {zlib.crc32(data):08x}"
    if isinstance(value, torch.amp.GradScaler):
        return f"{kind} with scale {value.get_scale():g}"
    if isinstance(value, torch.optim.Optimizer):
        steps = [int(state["step"]) for state in value.state.values() if "step" in state]
        return f"{kind} with {len(value.state)} states of step {max(steps, default=0)}"
    firsts = [each[(0,) * each.dim()].item() for each in _tensors(value) if id(each) not in own]
    return f"{kind} {zlib.crc32(repr(firsts).encode()):08x}"


def _tensors(value: nn.Module) -> Iterator[Tensor]:
    for each in (*value.parameters(), *value.buffers()):
        if type(each) in (Tensor, nn.Parameter) and each.layout is torch.strided and not each.is_meta and each.numel():
            yield each
