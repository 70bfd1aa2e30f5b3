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

from distributions import ROOT, Distribution, distributions


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the wheels of this repository.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="where they go; default: dist")
    for wheel in build(parser.parse_args().folder):
        print(wheel)


def build(folder: Path) -> list[Path]:
    """Build all wheels into a folder without other wheels of Holdfast; return them."""
    with tempfile.TemporaryDirectory() as stage:
        sources = [_stage(each, Path(stage) / each.name) for each in distributions().values()]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, *sources], check=True)
    return sorted(folder.glob("holdfast*.whl"))


def _stage(distribution: Distribution, stage: Path) -> Path:
    for place, folder in distribution.folders().items():
        shutil.copytree(folder, stage / "src" / place, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for place, names in distribution.files.items():
        (stage / "src" / place).mkdir(parents=True)
        for name in names:
            shutil.copy2(ROOT / name, stage / "src" / place)
    for left_out in (stage / "src" / name for name in distribution.left_out):
        shutil.rmtree(left_out) if left_out.is_dir() else left_out.unlink()
    (stage / "pyproject.toml").write_text(distribution.metadata())
    shutil.copy2(ROOT / "LICENSE", stage)
    return stage


if __name__ == "__main__":
    main()
