"""Search for objects that still hold groups that have ended: a script that keeps one would wait in it for ever."""

import gc
import inspect
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn
from torch.distributed.fsdp import FSDPModule

MOST = 5
"""That are named."""


def holders(groups: list[Any]) -> list[str]:
    """
    Describe the objects that hold any of the groups; empty for none.

    The collector finds them, so a dict or tuple of groups, numbers and texts alone is not found, nor under Python 3.10
    an object with such attributes alone.
    """
    found: list[str] = []
    with _all_objects():
        functions = [each for each in gc.get_objects() if type(each) is FunctionType]
        for group in groups:
            found += _in_frames(group)
            found += [f"a default argument of {_place(each)}" for each in functions if _is_default(each, group)]
            for referrer in gc.get_referrers(group):
                if referrer is not groups and not inspect.isframe(referrer):
                    found += _named(referrer, group)
    return list(dict.fromkeys(found))[:MOST]


@contextmanager
def _all_objects() -> Iterator[None]:
    """Have the collector look into what was imported before a fork as well."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    try:
        yield
    finally:
        if frozen:
            gc.freeze()


def sharded_beside(model: nn.Module) -> list[str]:
    """Return the kinds of modules that ``fully_shard`` was called for and that are not in a model."""
    known = {id(module) for module in model.modules()}
    with _all_objects():
        beside = [each for each in gc.get_objects() if issubclass(type(each), FSDPModule) and id(each) not in known]
    inner = {id(part) for each in beside for part in each.modules() if part is not each}
    names = [type(each).__name__.removeprefix("FSDP") for each in beside if id(each) not in inner]
    return list(dict.fromkeys(names))[:MOST]


def _named(referrer: Any, group: Any) -> list[str]:
    if isinstance(referrer, CellType):
        return [f"the closure of {_place(f)}" for f in _functions(gc.get_referrers(referrer))]
    if isinstance(referrer, dict | list | tuple | set):
        return _container(referrer, group)
    if isinstance(referrer, FunctionType | MethodType):
        return [f"a default argument of {_place(referrer)}"]
    names = [name for name, value in vars_of(referrer).items() if value is group]
    kind = f"{type(referrer).__module__}.{type(referrer).__qualname__}"
    return [f"attribute {names[0]!r} of a {kind}" if names else f"a {kind}"]


def _container(container: Any, group: Any) -> list[str]:
    keys = [key for key, value in container.items() if value is group] if isinstance(container, dict) else []
    what = f"{keys[0]!r}" if keys else f"an item of a {type(container).__name__}"
    found = []
    for owner in gc.get_referrers(container):
        if isinstance(owner, ModuleType):
            found.append(f"global {what} of module {owner.__name__}")
        elif isinstance(owner, FunctionType):
            if owner.__globals__ is container:
                found.append(f"global {what} of module {container.get('__name__')}")
            elif owner.__defaults__ is container or owner.__kwdefaults__ is container:
                found.append(f"a default argument of {_place(owner)}")
            else:
                found.append(f"{what} of {_place(owner)}")
        elif isinstance(owner, CellType):
            found += [f"the closure of {_place(f)}" for f in _functions(gc.get_referrers(owner))]
        elif isinstance(owner, dict):
            name = next((key for key, value in owner.items() if value is container), "")
            if owner.get("__name__"):
                found.append(f"{what} in global {name!r} of module {owner['__name__']}")
            elif _is_ours(owner):
                continue
            else:
                found.append(f"{what} in {name!r}")
        elif not inspect.isframe(owner) and vars_of(owner) is container:
            found.append(f"attribute {what} of a {type(owner).__module__}.{type(owner).__qualname__}")
    return found or [what]


def _in_frames(group: Any) -> list[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, top in sys._current_frames().items():
        frame: FrameType | None = top
        while frame is not None:
            code = frame.f_code
            if code.co_name != "<module>" and "holdfast_runtime" not in frame.f_globals.get("__name__", ""):
                for name, value in frame.f_locals.items():
                    if value is group:
                        line = f"{code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"
                        thread = f" in thread {names.get(ident, ident)}"
                        found.append(f"local variable {name!r} of {code.co_name} ({line}){thread}")
            frame = frame.f_back
    return found


def _is_default(function: FunctionType, group: Any) -> bool:
    return any(value is group for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))


def _functions(candidates: Iterable[Any]) -> list[FunctionType]:
    return [
        function
        for candidate in candidates
        if isinstance(candidate, tuple)
        for function in gc.get_referrers(candidate)
        if isinstance(function, FunctionType) and function.__closure__ is candidate
    ]


def vars_of(value: Any) -> dict[str, Any]:
    """The attributes of an object; empty for one without."""
    found: dict[str, Any] = getattr(value, "__dict__", {})
    return found


def _is_ours(owner: dict[Any, Any]) -> bool:
    return "_opening" in owner


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno})" if code is not None else ""
    return f"{function.__qualname__}{where}"
