"""
A virtual environment with some wheels of this repository and exactly what they ask for.

The wheels are installed by pip. What they ask for is linked from the environment that the tests run in, by the files
that each distribution lists as its own: nothing is downloaded, and what nobody asked for is not there to be imported.
"""

import os
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DEADLINE_S = 600
"""For a program that hangs, however busy the machine is."""
SITE = Path(sysconfig.get_path("purelib"))


class CleanEnvironment:
    """
    A virtual environment in a folder, with wheels and what they ask for.

    Args:
        folder: Where it is made.
        wheels: What is installed in it, with nothing of the checkout.
    """

    def __init__(self, folder: Path, *, wheels: Iterable[Path]) -> None:
        self.folder = folder
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        self.site = next((folder / "lib").iterdir()) / "site-packages"
        self._pip("install", "--no-index", "--no-deps", *map(str, wheels))
        asked = [each for found in metadata.distributions(path=[str(self.site)]) for each in found.requires or ()]
        self.third_party = closure(asked)
        _link(SITE, self.site, allowed=self.third_party)

    def check(self) -> None:
        """Every requirement of every distribution in here is met, in its range."""
        self._pip("check")

    def run(self, *command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, with no variable that would lead it to the checkout."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        program, *arguments = command
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd, env={**kept, **variables}, capture_output=True, text=True, timeout=DEADLINE_S,
        )  # fmt: skip

    def _pip(self, *arguments: str) -> None:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.folder / "bin/python"))
        _run(*pip, *arguments)


def closure(requirements: Iterable[str]) -> frozenset[str]:
    """
    The names of the distributions that requirements need, and those need, as far as they are not Holdfast's.

    Raises:
        PackageNotFoundError: one is not in the environment of the tests.
    """
    found: dict[str, set[str]] = defaultdict(set)
    left = [(Requirement(each), "") for each in requirements]
    while left:
        wanted, extra = left.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({**default_environment(), "extra": extra}):
            continue
        if name.startswith("holdfast-") or (name in found and wanted.extras <= found[name]):
            continue
        found[name] |= wanted.extras
        for each in metadata.distribution(name).requires or ():
            left += [(Requirement(each), chosen) for chosen in ("", *wanted.extras)]
    return frozenset(found)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


def _link(source: Path, target: Path, *, allowed: frozenset[str]) -> None:
    """Link what is in one folder of packages into another, as far as its files belong to what is allowed."""
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for each in metadata.distributions(path=[str(source)]):
        name = canonicalize_name(each.name)
        for file in each.files or ():
            for depth in range(1, len(file.parts) + 1):
                owners[file.parts[:depth]].add(name)
    _link_below((), source, target, owners, allowed)


def _link_below(
    parts: tuple[str, ...],
    source: Path,
    target: Path,
    owners: Mapping[tuple[str, ...], set[str]],
    allowed: frozenset[str],
) -> None:
    for entry in source.iterdir():
        of = owners.get((*parts, entry.name), set())
        if of and of <= allowed:
            (target / entry.name).symlink_to(entry)
        elif of & allowed:
            (target / entry.name).mkdir()
            _link_below((*parts, entry.name), entry, target / entry.name, owners, allowed)
