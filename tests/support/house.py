"""The rooms of this repository: who imports what, and what each face offers."""

import ast
import functools
import graphlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from distributions import ROOT, package_roots
from import_graph import Import, imports_among, modules_below


@functools.cache
def modules() -> Mapping[str, Path]:
    """Every module and package by name."""
    return modules_below(package_roots())


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
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = (path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file())
    return [one for one in imports_among(modules(), files=files) if one.module != one.importer]


@functools.cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def circle(arrows: Mapping[str, set[str]]) -> list[str]:
    """Names that lead back to the first of them; empty if there are none."""
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []
