"""Condition...= and Assert...= about files; systemd.unit(5)."""

from __future__ import annotations

import os

from .files import Root
from .text import Unit, UnitError

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable


def met(root: Root, unit: Unit) -> bool:
    """Return True if the unit may start. A false condition skips it silently, an assertion raises."""
    for key in _CHECKS:
        if not _holds(root, unit, f"Assert{key}"):
            raise UnitError(f"Assertion failed on job for {unit.name}.")
    return all(_holds(root, unit, f"Condition{key}") for key in _CHECKS)


def _holds(root: Root, unit: Unit, key: str) -> bool:
    triggers, seen = False, False
    for value in unit.all("Unit", key):
        trigger = value.startswith("|")
        text = value.removeprefix("|")
        negated = text.startswith("!")
        path = root.at(text.removeprefix("!"))
        holds = _CHECKS[key.removeprefix("Condition").removeprefix("Assert")](path) != negated
        if trigger:
            triggers, seen = triggers or holds, True
        elif not holds:
            return False
    return triggers or not seen


_CHECKS: dict[str, Callable[[str], bool]] = {
    "PathExists": os.path.exists,
    "PathIsDirectory": os.path.isdir,
    "PathIsSymbolicLink": os.path.islink,
    "PathIsMountPoint": os.path.ismount,
    "DirectoryNotEmpty": lambda path: os.path.isdir(path) and bool(os.listdir(path)),
    "FileNotEmpty": lambda path: os.path.isfile(path) and os.path.getsize(path) > 0,
    "FileIsExecutable": lambda path: os.path.isfile(path) and os.access(path, os.X_OK),
}
