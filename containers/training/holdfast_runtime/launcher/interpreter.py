"""
The Python that runs the launcher and its ranks: new enough, and with the packages that they import.

It is looked at before anything else is imported, so this file is read by every Python 3.6 and newer.
"""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST = (3, 10)
REQUIREMENTS = {"numpy": "numpy>=2.2,<3", "torch": "torch>=2.13,<3", "xxhash": "xxhash>=4.1,<5"}
"""Of the runtime's distribution, by the name of the module."""


def too_old(version: "Sequence[int]" = sys.version_info[:2], *, executable: str = sys.executable) -> str:
    """Message about a Python that cannot run the launcher; empty if it can."""
    if tuple(version[:2]) >= OLDEST:
        return ""
    return (
        f"{executable} is Python {version[0]}.{version[1]}; allowed: {OLDEST[0]}.{OLDEST[1]} or newer; "
        "make the environment with a newer Python"
    )


def missing(modules: "Sequence[str]", *, prefix: str = sys.prefix, executable: str = sys.executable) -> str:
    """Message about packages that these modules need and this Python lacks; empty for none."""
    packages = dict.fromkeys(name.partition(".")[0] for name in modules)
    if "holdfast_runtime" in packages:
        packages.update(dict.fromkeys(REQUIREMENTS))
    absent = sorted(name for name in packages if find_spec(name) is None)
    if not absent:
        return ""
    found = f"{executable} has no {', '.join(absent)}"
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = sorted(path.name for path in Path(prefix, "lib").glob("python3.*"))
    others = [name for name in folders if name != version]
    if others and version not in folders:
        return (
            f"{found}: the packages of {prefix} are for {', '.join(others)}, and its interpreter is {version} on this "
            f"node; make it again: {shlex.quote(executable)} -m venv --clear {shlex.quote(prefix)}"
        )
    needed = " ".join(shlex.quote(REQUIREMENTS.get(name, name)) for name in absent)
    return f"{found}; run: {shlex.quote(executable)} -m pip install {needed}"
