"""
Build the wheels of docs/reference/distributions.md into a folder: ``scripts/build_wheels.py [FOLDER]``.

Nothing is downloaded: the setuptools of the environment builds them.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from distributions import LICENSES, ROOT, Distribution, distributions, settings


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the wheels of this repository.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="where they go; default: dist")
    folder = parser.parse_args().folder
    try:
        wheels = build(folder)
    except subprocess.CalledProcessError:
        needed = " ".join(settings()["build-system"]["requires"])
        sys.exit(
            f"no wheels: pip's reason is above; if it is the build tools: {sys.executable} -m pip install '{needed}'"
        )
    for wheel in wheels:
        print(wheel)


def build(folder: Path, *, python: str = sys.executable) -> list[Path]:
    """
    Build all wheels into a folder without other wheels of Holdfast; return them.

    Args:
        python: Of an environment with pip and setuptools. Default: this one.
    """
    with tempfile.TemporaryDirectory() as stages:
        sources = [stage(each, Path(stages) / each.name) for each in distributions().values()]
        pip = [python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        here = ("--no-build-isolation", "--check-build-dependencies", "--wheel-dir", folder)
        subprocess.run([*pip, *here, *sources], check=True)
    return sorted(folder.glob("holdfast*.whl"))


def stage(distribution: Distribution, folder: Path) -> Path:
    """Lay out the sources of a wheel in a new folder; return it."""
    for place, source in distribution.folders().items():
        shutil.copytree(source, folder / "src" / place, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for place, names in distribution.files.items():
        (folder / "src" / place).mkdir(parents=True)
        for name in names:
            shutil.copy2(ROOT / name, folder / "src" / place)
    for left_out in (folder / "src" / name for name in distribution.left_out):
        shutil.rmtree(left_out) if left_out.is_dir() else left_out.unlink()
    (folder / "pyproject.toml").write_text(distribution.metadata())
    for name in LICENSES:
        shutil.copy2(ROOT / name, folder)
    return folder


if __name__ == "__main__":
    main()
