"""The Pythons that nodes have: where this machine has them, and what the oldest of them cannot run."""

import ast
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ENVIRONMENT = dict(os.environ)
"""As it was before any test took settings out of it."""
PYTHONS = {"HOLDFAST_PYTHON_EKS": (3, 9), "HOLDFAST_PYTHON_SLURM": (3, 10)}
"""By the setting that names one: Amazon Linux 2023's and Ubuntu 22.04's, of which HyperPod's AMIs are made."""


@functools.cache
def interpreter(setting: str) -> str | None:
    """Its path, from the setting or the PATH, if it runs and is of the node's version. A pyenv shim may do neither."""
    version = PYTHONS[setting]
    name = ENVIRONMENT.get(setting) or f"python{version[0]}.{version[1]}"
    found = shutil.which(name, path=ENVIRONMENT.get("PATH"))
    if found is None:
        return None
    ask = [found, "-S", "-c", "import sys; print(sys.version_info[:2])"]
    try:
        told = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return None
    return found if told.returncode == 0 and told.stdout.strip() == str(version) else None


def unions(source: str) -> Iterator[int]:
    """Lines with ``X | Y`` of types that Python evaluates: 3.9 has no such operator. Types are known by their names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and _is_type(node.left, node.right):
            yield node.lineno


def _is_type(*sides: ast.expr) -> bool:
    """Whether one of them is None, a built-in type, a class by its spelling, or one of these with parameters."""
    return any(
        (isinstance(side, ast.Constant) and side.value is None)
        or (isinstance(side, ast.Name) and (side.id in _BUILT_IN or (side.id[0].isupper() and not side.id.isupper())))
        or (isinstance(side, ast.Subscript) and _is_type(side.value))
        for side in sides
    )


_BUILT_IN = frozenset({"int", "float", "str", "bytes", "bool", "list", "dict", "set", "frozenset", "tuple", "type"})


def node_sources(repository: Path) -> list[Path]:
    """Every Python file that a node's own Python runs."""
    folders = (repository / "lifecycle", repository / "containers/common")
    return sorted(path for folder in folders for path in folder.rglob("*.py"))
