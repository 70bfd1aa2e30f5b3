"""A copy of this checkout that a test may break, and that runs with the same tools."""

import os
import shutil
import subprocess
from pathlib import Path

from distributions import package_roots

ROOT = Path(__file__).parents[2]
FOLDERS = tuple(str(root.relative_to(ROOT)) for root in package_roots())
"""Where its packages are."""


class Checkout:
    """
    What is tracked, in a folder of its own; npm's and Python's packages are those of this one.

    Args:
        whole: with tests and pages, so that its tests can run there. Default: without
    """

    def __init__(self, folder: Path, *, whole: bool = False) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in listed.stdout.splitlines():
            source, target = ROOT / name, folder / name
            if source.is_file() and (whole or not name.startswith(("tests/", "docs/"))):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for name in ("node_modules", ".venv"):
            (folder / name).symlink_to(ROOT / name)

    @property
    def variables(self) -> dict[str, str]:
        """With these in the environment, the commands of this checkout run the copy."""
        return {"PYTHONPATH": os.pathsep.join(str(self.folder / name) for name in FOLDERS)}

    def patch(self, name: str, *changes: tuple[str, str]) -> None:
        """Replace pieces of a file; each is there once."""
        path = self.folder / name
        text = path.read_text()
        for before, after in changes:
            assert text.count(before) == 1, f"{name} has {before!r} {text.count(before)} times"
            text = text.replace(before, after)
        path.write_text(text)
