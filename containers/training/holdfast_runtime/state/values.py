"""Values that are part of training besides tensors of the model: copy them, and put copies back in place."""

import contextlib
import functools
import random
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.transfer import local

IMMUTABLE = frozenset(
    {type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, torch.layout}
)
MOST_ITEMS = 10_000
"""Containers with more entries are data, not state of a module."""
GENERATOR, OBJECT = "holdfast generator", "holdfast object"
Path = tuple[str | int, ...]


class NotKeptError(TypeError):
    """A value of a kind that cannot be copied, sent and put back."""


def copied(value: Any, _seen: frozenset[int] = frozenset()) -> Any:
    """
    Return a plain copy of a value: dicts, lists, tuples, numbers, text, tensors and arrays.

    Generators and objects of the program's own classes become dicts with a mark; ``put_back`` reads them.

    Raises:
        NotKeptError: it holds a function, a module, an object of a library, or too many entries.
    """
    kind = type(value)
    if kind in IMMUTABLE or (kind is tuple and IMMUTABLE.issuperset(map(type, value))):
        return value
    if id(value) in _seen:
        raise NotKeptError("it refers to itself")
    inside = _seen | {id(value)}
    if isinstance(value, Tensor):
        if isinstance(value, nn.Parameter) or value.grad_fn is not None:
            raise NotKeptError("it is a parameter, or a result of the forward pass")
        return local(value).clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        if len(value) > MOST_ITEMS:
            raise NotKeptError(f"it has {len(value):,} entries; {MOST_ITEMS:,} are kept")
        if isinstance(value, dict):
            return {_key(key): copied(item, inside) for key, item in value.items()}
        # Text has another hash in each process, and so a set of it another order.
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        items = [copied(item, inside) for item in ordered]
        return tuple(items) if isinstance(value, tuple) else items
    if (state := generator_state(value)) is not None:
        return {GENERATOR: state}
    if _is_own(value):
        return {OBJECT: dict(_kept_attributes(value, inside))}
    raise NotKeptError(f"it is a {kind.__module__}.{kind.__qualname__}")


def put_back(current: Any, copy: Any) -> Any:
    if isinstance(copy, Tensor):
        return _put_tensor(current, copy)
    if isinstance(copy, np.ndarray):
        if isinstance(current, np.ndarray) and current.shape == copy.shape and current.dtype == copy.dtype:
            current[...] = copy
            return current
        return copy.copy()
    if isinstance(copy, dict):
        return _put_dict(current, copy)
    if isinstance(copy, list):
        before = [*current][: len(copy)] if isinstance(current, list | deque) else []
        items = [put_back(*pair) for pair in zip_longest(before, copy)]
        if isinstance(current, list):
            current[:] = items
            return current
        if isinstance(current, set | deque):
            current.clear()
            (current.update if isinstance(current, set) else current.extend)(items)
            return current
        return items
    if isinstance(copy, tuple):
        olds = current if isinstance(current, tuple) and len(current) == len(copy) else (None,) * len(copy)
        items = [put_back(old, item) for old, item in zip(olds, copy, strict=True)]
        return type(current)(*items) if hasattr(current, "_fields") else tuple(items)
    return copy


def equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if hasattr(one, "dtype"):
        return bool(one.shape == other.shape and (one == other).all())
    return bool(one == other)


@torch.no_grad()
def copy_into(tensor: Tensor, memory: Tensor | None) -> Tensor:
    kind = (tensor.shape, tensor.dtype, tensor.device)
    fits = memory is not None and (memory.shape, memory.dtype, memory.device) == kind
    return memory.copy_(tensor) if memory is not None and fits else tensor.clone()


def generator_state(value: Any) -> Any:
    """Return the state of a random generator as plain values; None for anything else."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return copied(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return copied(value.get_state(legacy=False))
    if isinstance(value, random.Random):
        return value.getstate()
    return None


def leaves(tree: Any, _path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, dict) and tree:
        for key, item in tree.items():
            yield from leaves(item, (*_path, key))
    elif isinstance(tree, list | tuple) and tree:
        for number, item in enumerate(tree):
            yield from leaves(item, (*_path, number))
    else:
        yield _path, tree


def replaced(tree: Any, values: Mapping[Path, Any], *, names: Collection[str]) -> Any:
    """
    Return a tree with values of another one.

    Args:
        values: Leaves of the other tree, by path. The tree may have none there yet.
        names: Of all leaves, as ``named`` has them, that are the other one's: those that it has not are left out.
    """
    found = _without(tree, (), names, values)
    for path, value in values.items():
        found = _with(found, path, value)
    return found


def _without(tree: Any, path: Path, names: Collection[str], kept: Collection[Path]) -> Any:
    def is_out(key: str | int, item: Any) -> bool:
        full = (*path, key)
        return not _is_filled(item) and named(full) in names and full not in kept

    if isinstance(tree, dict):
        left = {k: _without(item, (*path, k), names, kept) for k, item in tree.items() if not is_out(k, item)}
        # What nothing is left of is not there; but the parts of a state are, as its readers count on them.
        return {k: item for k, item in left.items() if len(path) < 2 or _is_filled(item) or not _is_filled(tree[k])}
    if isinstance(tree, list | tuple):
        items = [*tree]
        while items and is_out(len(items) - 1, items[-1]):
            items.pop()
        return type(tree)(_without(item, (*path, number), names, kept) for number, item in enumerate(items))
    return tree


def _is_filled(item: Any) -> bool:
    return isinstance(item, dict | list | tuple) and bool(item)


def _with(tree: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    key, *rest = path
    if isinstance(key, int) and not isinstance(tree, dict):
        old = tree if isinstance(tree, list | tuple) else []
        items = [*old, *[None] * (key + 1 - len(old))]
        items[key] = _with(items[key], tuple(rest), value)
        return type(old)(items)
    named_items = tree if isinstance(tree, dict) else {}
    return {**named_items, key: _with(named_items.get(key), tuple(rest), value)}


def named(path: Path) -> str:
    shown_parts = [part for part in path if part not in (OBJECT, "attributes", "")]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown_parts)
    return text.removeprefix(".").replace(f".{GENERATOR}", " (generator)")


def shown(value: Any) -> str:
    if isinstance(value, Tensor):
        if value.numel() == 1:
            return f"{value.item():.6g}"
        return f"{str(value.dtype).removeprefix('torch.')} {[*value.shape]} with sum {value.double().sum():.6g}"
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _key(key: Any) -> Any:
    if type(key) not in IMMUTABLE and not isinstance(key, tuple):
        raise NotKeptError(f"it has a key of type {type(key).__qualname__}")
    return key


def _put_tensor(current: Any, copy: Tensor) -> Any:
    own = local(current) if isinstance(current, Tensor) else None
    if own is None or own.shape != copy.shape or own.dtype != copy.dtype:
        made = copy.clone()
        if own is not None:
            made = made.to(own.device)
        return nn.Parameter(made, requires_grad=current.requires_grad) if isinstance(current, nn.Parameter) else made
    if own.device != copy.device or not torch.equal(own, copy):
        with torch.no_grad():
            own.copy_(copy)
    return current


def _put_dict(current: Any, copy: dict[Any, Any]) -> Any:
    if GENERATOR in copy:
        return _put_generator(current, copy[GENERATOR])
    if OBJECT in copy:
        for name, item in copy[OBJECT].items():
            object.__setattr__(current, name, put_back(getattr(current, name, None), item))
        return current
    items = {key: put_back(current.get(key) if isinstance(current, dict) else None, item) for key, item in copy.items()}
    if isinstance(current, dict):
        current.clear()
        current.update(items)
        return current
    return items


def _put_generator(current: Any, state: Any) -> Any:
    if isinstance(current, torch.Generator):
        current.set_state(state.cpu())
    elif isinstance(current, np.random.Generator):
        current.bit_generator.state = state
    elif isinstance(current, np.random.RandomState):
        current.set_state(state)
    elif isinstance(current, random.Random):
        current.setstate((state[0], tuple(state[1]), state[2]))
    return current


def _kept_attributes(value: Any, inside: frozenset[int]) -> Iterator[tuple[str, Any]]:
    for name, item in vars(value).items():
        with contextlib.suppress(NotKeptError):
            yield name, copied(item, inside)


def _is_own(value: Any) -> bool:
    kind = type(value)
    if isinstance(value, nn.Module | type) or callable(value) or not hasattr(value, "__dict__"):
        return False
    return not is_library(kind.__module__)


@functools.cache
def is_library(module: str) -> bool:
    """Return True for modules of Python, of installed packages and of this runtime."""
    if module.partition(".")[0] in {"holdfast_runtime", "holdfast_common", *sys.stdlib_module_names}:
        return module != "__main__"
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path
