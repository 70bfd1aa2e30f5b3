"""Hooks of a program on modules, parameters and the optimizer: their names, and the way back to those of a state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

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
