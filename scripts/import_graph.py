"""Packages of this repository and their imports, read from the source."""

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Import:
    file: Path
    line: int
    importer: str
    """The module in which it stands; empty for a file that is in no package."""
    module: str
    """The module that it names, ours or another's."""
    waits: bool
    """Whether it stands in a function."""
    typing: bool
    """Whether only a type checker follows it."""


def modules_below(roots: Iterable[Path]) -> dict[str, Path]:
    """Modules and packages by name; a package by its ``__init__``."""
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): path
        for root in roots
        for package in sorted(root.glob("holdfast*"))
        for path in sorted(package.rglob("*.py"))
        for parts in [path.relative_to(root).with_suffix("").parts]
    }


def imports_of(file: Path, *, importer: str, modules: Mapping[str, Path]) -> Iterator[Import]:
    """Imports of a file; ``modules`` distinguishes a module of a package from a name in it."""
    package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
    for node, waits, typing in _import_statements(file):
        for module in _named(node, package=package, modules=modules):
            yield Import(file=file, line=node.lineno, importer=importer, module=module, waits=waits, typing=typing)


def imports_among(modules: Mapping[str, Path], *, files: Iterable[Path] = ()) -> Iterator[Import]:
    """Imports of modules by each other, and by other files."""
    names = {path: name for name, path in modules.items()}
    for file in dict.fromkeys([*modules.values(), *files]):
        for one in imports_of(file, importer=names.get(file, ""), modules=modules):
            if one.module in modules:
                yield one


@functools.cache
def _import_statements(file: Path) -> Sequence[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    return tuple(_statements(ast.parse(file.read_text()).body))


def _statements(
    body: Iterable[ast.AST], *, waits: bool = False, typing: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    """Imports, with flags for lazy and type-only ones."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, waits, typing
            continue
        below = waits or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        checked = typing or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            if isinstance(inner := getattr(node, field, None), list):
                yield from _statements(inner, waits=below, typing=checked)


def _named(node: ast.Import | ast.ImportFrom, *, package: str, modules: Mapping[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1] if node.level else []
    base = ".".join([*above, *filter(None, [node.module])])
    for alias in node.names:
        yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base
