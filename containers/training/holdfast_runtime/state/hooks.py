"""Hooks of a program on modules, parameters and the optimizer: their names, and the way back to those of a state."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch
from torch import nn

from holdfast_runtime.state.values import is_library

KINDS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
OF_OPTIMIZERS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
NO_HOOKS: dict[str, dict[int, Any]] = {}
all_of = itemgetter(*KINDS)
"""Of the attributes of a module."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook and where it is registered."""

    text: str
    number: int
    home: dict[int, Any]


class _WithOwn(OrderedDict[int, Any]):
    """Hooks of a model, one of them of the runtime, which pickle and deepcopy leave out."""

    own = -1

    def __reduce__(self) -> tuple[Any, ...]:
        others = [(number, hook) for number, hook in self.items() if number != self.own]
        return OrderedDict, (), None, None, iter(others)


def before_forward(model: nn.Module, hook: Callable[..., None]) -> None:
    """Register a hook of the runtime, with the model's named arguments; a copy or a file of the model has it not."""
    # A handle of a hook that is registered already has a weak reference to the dict that is here.
    if not model._forward_pre_hooks:
        model._forward_pre_hooks = _WithOwn()
        model._forward_pre_hooks_with_kwargs = _WithOwn()
    number = model.register_forward_pre_hook(hook, with_kwargs=True).id
    for home in (model._forward_pre_hooks, model._forward_pre_hooks_with_kwargs):
        if isinstance(home, _WithOwn):
            home.own = number


def before_step(optimizer: torch.optim.Optimizer, hook: Callable[..., None]) -> None:
    """Register a hook of the runtime, also for a wrapper of an optimizer that does not call ``Optimizer.__init__``."""
    for name in OF_OPTIMIZERS:
        home = getattr(optimizer, name, {})
        if not isinstance(home, OrderedDict):  # torch refers to it weakly, which a dict does not allow
            setattr(optimizer, name, OrderedDict(home))
    optimizer._patch_step_function()
    optimizer.register_step_pre_hook(hook)


def by_kind(values: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    return {kind: found for kind in KINDS if values[kind] and (found := of_program(values[kind]))}


def of_program(hooks: Mapping[int, Any]) -> dict[int, Any]:
    return {
        number: hook
        for number, hook in hooks.items()
        if not is_library(getattr(getattr(hook, "func", hook), "__module__", "") or "")
    }


def of_module(values: Mapping[str, Any]) -> Iterator[Hook]:
    for kind in KINDS if any(all_of(values)) else ():
        yield from of_home(kind, values[kind])


def of_home(kind: str, home: dict[int, Any]) -> Iterator[Hook]:
    for number, hook in of_program(home).items():
        yield Hook(f"{kind.strip('_')} {name_of(hook)}", number, home)


def keep(found: Sequence[Hook], required: Sequence[str]) -> list[str]:
    missing = list(required)
    for hook in found:
        if missing and hook.text == missing[0]:
            del missing[0]
        else:
            del hook.home[hook.number]
    return missing


def name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))
