"""The packages of this repository and what they import, read from the source and not from a running program."""

import ast
import functools
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from distributions import package_roots

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "holdfast",
    "holdfast_constructs",
    "holdfast_stacks",
    "holdfast_common",
    "holdfast_runtime",
    "holdfast_lifecycle",
)


@dataclass(frozen=True)
class Import:
    """One module that a file imports, by its full name."""

    file: str
    """Relative to the repository."""
    line: int
    importer: str
    """The importing module; empty for a file that is in no package."""
    module: str
    typing: bool
    """True if only a type checker follows it."""


@functools.cache
def modules() -> Mapping[str, Path]:
    """Every module and package by name."""
    found = {}
    for root in package_roots():
        for name in PACKAGES:
            for path in sorted((root / name).rglob("*.py")) if (root / name).is_dir() else ():
                parts = path.relative_to(root).with_suffix("").parts
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def packages() -> frozenset[str]:
    return frozenset(name for name, path in modules().items() if path.name == "__init__.py")


def package_of(module: str) -> str:
    """The folder that a module is in; a package is in itself."""
    return module if module in packages() else module.rpartition(".")[0]


@functools.cache
def offered(package: str) -> tuple[str, ...] | None:
    """What ``__all__`` of a package lists; None if it has none."""
    for node in ast.parse(modules()[package].read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value is not None
            return tuple(ast.literal_eval(node.value))
    return None


@functools.cache
def imports() -> Sequence[Import]:
    """Every import of one of our modules, from the packages and from all that uses them."""
    names = {path: name for name, path in modules().items()}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [
        one
        for line in listed.stdout.splitlines()
        if (ROOT / line).is_file()
        for one in _imports(line, importer=names.get(ROOT / line, ""))
    ]


def _imports(file: str, *, importer: str) -> Iterator[Import]:
    tree = ast.parse((ROOT / file).read_text())
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        for module in _named(node, package=package_of(importer) if importer else ""):
            if module in modules() and module != importer:
                yield Import(file, getattr(node, "lineno", 0), importer, module, id(node) in typing)


def _named(node: ast.AST, *, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
        for alias in node.names:
            yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Names that reach each other, by Tarjan's strongly connected components."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows.get(name, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            circle = []
            while name not in circle:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return found
