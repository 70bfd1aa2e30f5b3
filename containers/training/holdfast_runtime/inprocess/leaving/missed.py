"""
The code of a program that did not run because a collective was left: found in its source, before the job goes on.

Behind the update of a step nothing can be done again. Where all that stands behind the collective is of no consequence
(the rest of an evaluation that only computes, a log line), the training goes on; the first statement that may change
something ends the job. Calls such as ``model.train()`` are made up for.
"""

import ast
import builtins
import functools
import inspect
import itertools
import linecache
import random
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

import numpy as np
import torch
from torch import nn

HARMLESS = frozenset(
    (
        *("print", "item", "tolist", "format", "join", "items", "keys", "values", "get", "barrier", "synchronize"),
        *("debug", "info", "warning", "log", "add_scalar", "perf_counter", "time", "monotonic"),
    )
)
"""Methods and functions by name, whatever they belong to: values and log lines."""
PURE = frozenset(
    (
        *("abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min"),
        *("print", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"),
    )
)
BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
DEEPEST = 4
"""Functions of the program that call each other, as far as they are read."""
LIBRARIES = (str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"), "<frozen")
Names = Mapping[str, Any]


@dataclass(frozen=True)
class Behind:
    """Code that did not run."""

    statement: str = ""
    """The first statement of consequence, as ``file:line: text``; empty for none."""
    modes: tuple[Callable[[], object], ...] = ()
    """Calls of ``train`` and ``eval`` of modules, in their order."""


def behind(error: BaseException, step: object) -> Behind:
    frames = _frames(error)
    own = [n for n, each in enumerate(frames) if not _is_library(each.tb_frame.f_code.co_filename)]
    found: list[Behind] = []
    for number in own:
        found.append(_behind_in(frames[number], None if found else step))
        strangers = [each for each in frames[own[0] : number] if _is_strange(each.tb_frame.f_code.co_filename)]
        if strangers:
            found.append(Behind(f"{_place(strangers[-1])}: (a library that calls the program)"))
    innermost_first = found[::-1]
    statement = next((each.statement for each in innermost_first if each.statement), "")
    return Behind(statement, tuple(call for each in innermost_first for call in each.modes))


def _frames(error: BaseException) -> list[TracebackType]:
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _place(trace: TracebackType) -> str:
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def _behind_in(trace: TracebackType, step: object | None) -> Behind:
    code, line = trace.tb_frame.f_code, trace.tb_lineno
    names: Names = {**trace.tb_frame.f_globals, **trace.tb_frame.f_locals}
    tree = _parsed(code.co_filename)
    path = _path_to(tree, line) if tree is not None else []
    inside = (ast.FunctionDef, ast.AsyncFunctionDef) if step is None else (ast.With,)
    starts = [
        n for n, node in enumerate(path) if isinstance(node, inside) and (step is None or _enters(node, step, names))
    ]
    scope, path = path[: starts[-1]] if starts else [], path[starts[-1] :] if starts else []
    if not path:
        return Behind(f"{_place(trace)}: (its source cannot be read)")
    kept: frozenset[str] = frozenset()
    if step is not None:
        functions = [node for node in scope if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        kept = _used_again(functions[-1] if functions else tree, path[0])
    modes = []
    for statement in (*_unfinished(path[-1]), *_managers(path, names), *_following(path)):
        if call := _mode_call(statement, names):
            modes.append(call)
        elif not _harmless(statement, names, kept=kept, depth=DEEPEST):
            text = linecache.getline(code.co_filename, statement.lineno).strip()
            return Behind(f"{Path(code.co_filename).name}:{statement.lineno}: {text}")
    return Behind(modes=tuple(modes))


def _mode_call(statement: ast.stmt, names: Names) -> Callable[[], object] | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "eval")
    ):
        return None
    module = _known(call.func.value, names)
    values = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if not isinstance(module, nn.Module) or call.keywords or len(values) != len(call.args):
        return None
    return functools.partial(getattr(module, call.func.attr), *values)


def _managers(path: list[ast.AST], names: Names) -> Iterator[ast.stmt]:
    for node in path[1:]:
        for item in node.items if isinstance(node, ast.With) else ():
            made = _known(item.context_expr.func, names) if isinstance(item.context_expr, ast.Call) else None
            generator = getattr(made, "__wrapped__", None)
            if isinstance(generator, FunctionType) and isinstance(node, ast.stmt) and _is_incomplete(generator):
                yield node


def _is_incomplete(generator: FunctionType) -> bool:
    return not _is_library(generator.__code__.co_filename) and "finally" not in inspect.getsource(generator)


def _unfinished(statement: ast.AST) -> Iterator[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        # The call that was left may be the outermost one, or inside of the arguments of another.
        inner = [node for argument in statement.value.args for node in ast.walk(argument) if isinstance(node, ast.Call)]
        if not inner:
            return
    if isinstance(statement, ast.stmt) and not isinstance(statement, ast.FunctionDef):
        yield statement


def _following(path: list[ast.AST]) -> Iterator[ast.stmt]:
    for outer, inner in reversed([*itertools.pairwise(path)]):
        for name, block in ast.iter_fields(outer):
            if not (isinstance(block, list) and inner in block):
                continue
            yield from block[block.index(inner) + 1 :]
            if isinstance(outer, ast.For | ast.While) and name == "body":
                yield from block[: block.index(inner) + 1]
            if isinstance(outer, ast.For | ast.While | ast.Try) and name == "body":
                yield from outer.orelse


def _harmless(statement: ast.stmt, names: Names, *, kept: frozenset[str], depth: int) -> bool:
    for node in ast.walk(statement):
        if isinstance(
            node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Delete | ast.Yield | ast.Await
        ):
            return False
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in kept:
            return False
        if isinstance(node, ast.Call) and not _harmless_call(node, names, depth=depth):
            return False
    return True


def _harmless_call(call: ast.Call, names: Names, *, depth: int) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in HARMLESS:
        return True
    if isinstance(call.func, ast.Attribute) and _is_new(call.func.value, names):
        return True
    called = _known(call.func, names)
    of = _known(call.func.value, names) if isinstance(call.func, ast.Attribute) else None
    if called is None or isinstance(of, torch.Tensor):
        # A method of a value that may not exist yet: those of tensors are known by name.
        return isinstance(call.func, ast.Attribute) and hasattr(torch.Tensor, name) and not name.endswith("_")
    if isinstance(called, nn.Module):
        return True
    if isinstance(called, FunctionType) and not _is_library(called.__code__.co_filename):
        return depth > 0 and _harmless_function(called, depth=depth - 1)
    home = getattr(called, "__module__", None) or type(getattr(called, "__self__", None)).__module__
    if home == "builtins":
        return name in PURE or isinstance(getattr(called, "__self__", None), str)
    if home.partition(".")[0] == "holdfast_runtime":
        return name == "all_reduce_mean"
    library = home.partition(".")[0] in ("torch", "numpy", "math")
    return library and not name.endswith("_") and not name.startswith(("save", "set_", "manual_seed"))


def _is_new(node: ast.expr, names: Names) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and _is_new(node.func.value, names):
        return True
    return _known(node.func, names) in (torch.Generator, np.random.default_rng, np.random.RandomState, random.Random)


def _harmless_function(function: Callable[..., Any], *, depth: int) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    names: Names = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    body = tree.body[0]
    if not isinstance(body, ast.FunctionDef):
        return False
    return all(_harmless(statement, names, kept=frozenset(), depth=depth) for statement in body.body)


def _known(node: ast.expr, names: Names) -> Any:
    try:
        return _value(node, names)
    except (AttributeError, LookupError):
        return None


def _used_again(scope: ast.AST | None, block: ast.AST) -> frozenset[str]:
    """Return the names bound in a ``with`` block of which a later statement may read what the block left."""
    inside = [*_occurrences(block)]
    within = {id(node) for node, _ in inside}
    outside = {
        node.id
        for node in (ast.walk(scope) if scope is not None else ())
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in within
    }
    shared = (ast.Global, ast.Nonlocal)
    outside |= {
        name
        for node in (ast.walk(scope) if scope is not None else ())
        if isinstance(node, shared)
        for name in node.names
    }
    first: dict[str, bool] = {}
    for node, is_read in inside:
        first.setdefault(node.id, is_read)
    return frozenset(name for name, is_read in first.items() if is_read or name in outside)


def _occurrences(node: ast.AST) -> Iterator[tuple[ast.Name, bool]]:
    if isinstance(node, ast.Name):
        yield node, isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target, True
    children = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr | ast.comprehension):
        values = [child for child in children if not _is_target(child)]
        bodies = [child for child in values if isinstance(child, ast.stmt)]
        children = [*(v for v in values if v not in bodies), *(c for c in children if _is_target(c)), *bodies]
    for child in children:
        yield from _occurrences(child)


def _is_target(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _value(node: ast.expr, names: Names) -> Any:
    if isinstance(node, ast.Name):
        return names[node.id] if node.id in names else getattr(builtins, node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        children = vars(owner).get("_modules", {}) if isinstance(owner, nn.Module) else {}
        return children[node.attr] if node.attr in children else inspect.getattr_static(owner, node.attr)
    raise LookupError(ast.dump(node))


def _enters(node: ast.AST, step: object, names: Names) -> bool:
    return isinstance(node, ast.With) and any(_known(item.context_expr, names) is step for item in node.items)


def _path_to(tree: ast.AST, line: int) -> list[ast.AST]:
    path = [tree]
    while True:
        inner = [node for node in _statements(path[-1]) if isinstance(node, BLOCKS) and _spans(node, line)]
        if not inner:
            return path[1:]
        path.append(inner[0])


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for _, block in ast.iter_fields(node):
        if isinstance(block, list):
            yield from (item for item in block if isinstance(item, ast.AST))


def _spans(node: Any, line: int) -> bool:
    if not hasattr(node, "lineno"):  # a case of a match statement
        return any(_spans(statement, line) for statement in node.body)
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))


@functools.cache
def _parsed(path: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return None


def _is_strange(path: str) -> bool:
    return "-packages" in path and "-packages/torch/" not in path


def _is_library(path: str) -> bool:
    return "-packages/" in path or path.startswith(LIBRARIES)
