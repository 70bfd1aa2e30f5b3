"""
A virtual environment with some wheels of this repository and exactly what they ask for.

The wheels are installed by pip. What they ask for is linked from the environment that the tests run in, by the files
that each distribution lists as its own: nothing is downloaded, and what nobody asked for is not there to be imported.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from distributions import distributions

DEADLINE_S = 600
"""For a program that hangs, however busy the machine is."""
SITE = Path(sysconfig.get_path("purelib"))


class CleanEnvironment:
    """
    A virtual environment in a folder, with one of our wheels, those of ours that it needs, and what they ask for.

    Args:
        folder: Where it is made.
        distribution: What is installed in it, by its name.
        wheels: A folder with all our wheels.
        also: What the test itself needs in it.
        for_nodes: Packages of others are files, not links: a local node has this environment alone.
        beside: Others of our distributions that are installed beside it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        distribution: str,
        wheels: Path,
        also: Iterable[str] = (),
        beside: Iterable[str] = (),
        for_nodes: bool = False,
    ) -> None:
        self.folder = folder
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        site = next((folder / "lib").iterdir()) / "site-packages"
        first = (distribution, *beside)
        names = {*first}.union(*map(ours, first))
        chosen = (next(wheels.glob(f"{name.replace('-', '_')}-*.whl")) for name in sorted(names))
        self._pip("install", "--no-index", "--no-deps", *map(str, chosen))
        asked = [each for found in metadata.distributions(path=[str(site)]) for each in found.requires or ()]
        _link(SITE, site, allowed=closure((*asked, *also)), bring=_copy if for_nodes else _symlink)

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


def ours(distribution: str) -> frozenset[str]:
    """Those of our distributions that one needs, and those need."""
    direct = distributions().keys() & distributions()[distribution].requires
    return frozenset(direct).union(*map(ours, direct))


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
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        if name in distributions() or (name in found and wanted.extras <= found[name]):
            continue
        found[name] |= wanted.extras
        for each in metadata.distribution(name).requires or ():
            left += [(Requirement(each), chosen) for chosen in ("", *wanted.extras)]
    return frozenset(found)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


def _symlink(source: Path, target: Path) -> None:
    target.symlink_to(source)


def _copy(source: Path, target: Path) -> None:
    """Hard links where the file system can: PyTorch has a gigabyte."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=_copy_file)
    else:
        _copy_file(source, target)


def _copy_file(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _link(source: Path, target: Path, *, allowed: frozenset[str], bring: Callable[[Path, Path], None]) -> None:
    """Bring what is in one folder of packages into another, as far as its files belong to what is allowed."""
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for each in metadata.distributions(path=[str(source)]):
        name = canonicalize_name(each.name)
        for file in each.files or ():
            for depth in range(1, len(file.parts) + 1):
                owners[file.parts[:depth]].add(name)
    _link_below((), source, target, owners, allowed, bring)


def _link_below(
    parts: tuple[str, ...],
    source: Path,
    target: Path,
    owners: Mapping[tuple[str, ...], set[str]],
    allowed: frozenset[str],
    bring: Callable[[Path, Path], None],
) -> None:
    for entry in source.iterdir():
        of = owners.get((*parts, entry.name), set())
        if of and of <= allowed:
            bring(entry, target / entry.name)
        elif of & allowed:
            (target / entry.name).mkdir()
            _link_below((*parts, entry.name), entry, target / entry.name, owners, allowed, bring)
