"""What the tests of examples/recipes have in common."""

import subprocess
import sys
from pathlib import Path

from killing import ROOT

RECIPES = ROOT / "examples" / "recipes"


def tokens(path: Path) -> Path:
    """A token file of this repository's own catalogue, made as the README says."""
    build = [sys.executable, "-m", "holdfast_runtime.data", "build", str(ROOT / "holdfast" / "catalog")]
    subprocess.run([*build, "--pattern", "*.py", "--quiet", "-o", str(path)], check=True, cwd=ROOT, capture_output=True)
    return path
