"""
torch without its compiler, to preload in its place.

Optimizers import torch._dynamo for three functions. That takes longer than importing torch itself, and the programs of
the tests compile nothing. What is preloaded by default has the compiler; other tests start with that.
"""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch


def _as_it_is(function: Callable[..., Any], *_: object, **__: object) -> Callable[..., Any]:
    return function


def _nothing() -> None:
    pass


_compiler = ModuleType("torch._dynamo")
_compiler.disable = _as_it_is  # type: ignore[attr-defined]
_compiler.graph_break = _nothing  # type: ignore[attr-defined]
_compiler.trace_rules = SimpleNamespace(clear_lru_cache=_nothing)  # type: ignore[attr-defined]
sys.modules["torch._dynamo"] = _compiler
torch._dynamo = _compiler
