"""
Build a release and check it: ``scripts/release.py [FOLDER] [--tag TAG]``. Both workflows call it.

It needs Python and a package index, as pip's settings name one. It uploads nothing.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from build_wheels import build
from distributions import ROOT, Distribution, distributions, settings

FIRST = ("holdfast-hyperpod", "holdfast-constructs")
"""What a newcomer installs to init and check. PyTorch is left to holdfast-runtime's tests."""
KEY = "SIGNING_KEY"
SUMS = "SHA256SUMS"
_RELEASED = re.compile(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", re.MULTILINE)
_LOWEST = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)")


class ReleaseError(Exception):
    """This is no release; the message has cause and fix."""


class Environment:
    """A fresh virtual environment."""

    def __init__(self, folder: Path, *packages: str | Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.programs = folder / "bin"
        self.run("python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)

    def run(self, program: str, *arguments: str | Path, cwd: Path = ROOT) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != KEY}
        subprocess.run([self.programs / program, *arguments], check=True, cwd=cwd, env=kept)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a release and check it.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="emptied first; default: dist")
    parser.add_argument("--tag", help="tag of the release; default: none yet")
    given = parser.parse_args()
    try:
        check_version(tag=given.tag, changelog=(ROOT / "CHANGELOG.md").read_text())
        release(given.folder.resolve())
    except ReleaseError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed with exit code {error.returncode}: {' '.join(map(str, error.cmd))}")


def check_version(*, tag: str | None, changelog: str) -> None:
    """Raises: ReleaseError: tag, pyproject.toml and changelog have different versions, or the changelog no date."""
    version = settings()["project"]["version"]
    if tag is not None and tag != f"v{version}":
        raise ReleaseError(f"got tag {tag}; allowed: v{version}; set version in pyproject.toml, or move the tag")
    if version not in _RELEASED.findall(changelog):
        raise ReleaseError(f"got no date of {version} in CHANGELOG.md; write its heading as: ## {version} (2026-01-31)")


def release(folder: Path) -> None:
    """Make a folder with wheels, SBOM, checksums and, with a key, their signature. Raises: CalledProcessError."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tools = Environment(work / "tools", "--require-hashes", "-r", ROOT / "requirements-release.txt")
        wheels = build(folder, python=str(tools.programs / "python"))
        tools.run("twine", "check", "--strict", *wheels)
        (work / "oldest.txt").write_text("\n".join(oldest(distributions().values())))
        first = [wheel for wheel in wheels if wheel.name.partition("-")[0] in _needed()]
        newest = Environment(work / "newest", *first)
        _try_first_commands(newest, work / "with-newest")
        _try_first_commands(Environment(work / "oldest", "-c", work / "oldest.txt", *first), work / "with-oldest")
        others = [wheel for wheel in wheels if wheel not in first]
        newest.run("python", "-m", "pip", "install", "--quiet", "--no-deps", *others)  # PyTorch is the machine's
        sbom = ("--output-reproducible", "--output-format", "JSON", "--output-file", folder / "SBOM.json")
        tools.run("cyclonedx-py", "environment", *sbom, newest.programs / "python")
    sums = folder / SUMS
    sums.write_text("".join(_sums(path for path in sorted(folder.iterdir()))))
    sign(sums, key=os.environ.get(KEY, ""))


def oldest(wheels: Iterable[Distribution]) -> list[str]:
    """Pins of the lowest version that the ranges of wheels allow; of several ranges the highest of these."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for requirement in (one for wheel in wheels for one in wheel.requires):
        if at := _LOWEST.match(requirement):
            found.setdefault(at[1], []).append(tuple(map(int, at[2].split("."))))
    return [f"{name}=={'.'.join(map(str, max(versions)))}" for name, versions in sorted(found.items())]


def sign(sums: Path, *, key: str) -> None:
    """Sign checksums with an armoured OpenPGP key; without one, report that and go on."""
    if not key:
        print(f"signature: skipped: {KEY} is not set; set it to an armoured OpenPGP key")
        return
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet"]
        try:
            subprocess.run([*gpg, "--import"], input=key.encode(), check=True)
            subprocess.run([*gpg, "--armor", "--detach-sign", sums], check=True)
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    print(f"signature: {sums}.asc")


def _needed() -> frozenset[str]:
    """Names of files of the wheels that a newcomer installs, with those of ours that they require."""
    names = {*FIRST}
    for wheel in reversed(list(distributions().values())):  # what is required comes first
        if wheel.name in names:
            names |= distributions().keys() & wheel.requires
    return frozenset(name.replace("-", "_") for name in names)


def _try_first_commands(environment: Environment, folder: Path) -> None:
    environment.run("python", "-m", "pip", "check")
    folder.mkdir()
    environment.run("holdfast", "init", "--name", "lab", "--yes", cwd=folder)
    environment.run("holdfast", "check", "lab", "--offline", cwd=folder)


def _sums(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"


if __name__ == "__main__":
    main()
