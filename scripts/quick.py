"""
Test what a change touches: ``scripts/quick.py [--since COMMIT] [-- pytest options]``.

Changed are the files that differ from a commit (HEAD by default; the last commit where nothing differs from HEAD).
Tested are unit tests that import a package with changed files, or one that depends on it within four imports: the
nearest first.
"""

import argparse
import functools
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from distributions import ROOT, package_roots
from import_graph import imports_among, modules_below

UNIT = ROOT / "tests" / "unit"
BESIDE = (ROOT / "tests" / "support", ROOT / "scripts")
"""Folders of files that tests import by their own names."""
PAGES = "tests/unit/repository/docs/test_*.py"
NEAR = 4
"""Imports between a change and a test; what is farther is for ``make test``."""


def changed_files(since: str | None) -> list[Path]:
    """Return the files that differ from a commit, new ones too; those of the last commit where nothing differs."""
    names = _git("diff", "--name-only", since or "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    if not names and since is None:
        names = _git("diff", "--name-only", "HEAD~1")
    return [ROOT / name for name in names]


@functools.cache
def importers() -> Mapping[Path, set[Path]]:
    """Return for each file of a package, of tests/support, of scripts and of the tests the files that import it."""
    beside = {path.stem: path for folder in BESIDE for path in folder.glob("*.py")}
    modules = {**modules_below(package_roots()), **beside}
    found: dict[Path, set[Path]] = defaultdict(set)
    for one in imports_among(modules, files=UNIT.rglob("test_*.py")):
        found[modules[one.module]].add(one.file)
    return found


def distances(changed: Iterable[Path], importing: Mapping[Path, set[Path]]) -> dict[Path, int]:
    """Return how many imports lie between the changed files and each file that depends on one of them."""
    distance = dict.fromkeys(changed, 0)
    waiting = deque(distance)
    while waiting:
        file = waiting.popleft()
        for other in importing.get(file, ()):
            if other not in distance:
                distance[other] = distance[file] + 1
                waiting.append(other)
    return distance


def package_of(file: Path) -> Path | None:
    """Return the nearest folder above a file that is a package."""
    return next((folder for folder in file.parents if (folder / "__init__.py").is_file()), None)


def touched(changed: Iterable[Path]) -> list[Path]:
    """Return the unit tests that a change touches, the nearest first."""
    importing = importers()
    packages = {package_of(file) for file in changed} - {None}
    distance = distances([*(file for file in importing if package_of(file) in packages), *changed], importing)
    pages = sorted(ROOT.glob(PAGES)) if any(file.suffix == ".md" for file in changed) else []
    near = [file for file, imports in distance.items() if imports <= NEAR]
    tests = [file for file in near if file.is_relative_to(UNIT) and file.is_file()]
    return [*pages, *sorted(tests, key=lambda test: (distance[test], test))]


def main() -> int:
    """Return pytest's exit code; 0 where a change touches no unit test."""
    parser = argparse.ArgumentParser(description="Test what a change touches.")
    parser.add_argument("--since", help="commit to compare with; HEAD by default")
    parser.add_argument("--list", action="store_true", help="show the tests, run none")
    options, others = parser.parse_known_args()
    changed = changed_files(options.since)
    tests = touched(changed)
    print(f"{len(changed)} changed files, {len(tests)} files of unit tests", flush=True)
    if options.list:
        print(*(test.relative_to(ROOT) for test in tests), sep="\n")
    if options.list or not tests:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--numprocesses", "3", "--dist", "loadfile", *others]
    return subprocess.run([*command, *map(str, tests)], cwd=ROOT, check=False).returncode


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
