"""The wheel of this checkout as another app has it: its content before everything else, and nothing of the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from build_wheels import build

DEADLINE_S = 600
"""For a program that hangs, however busy the machine is."""


OF_CONSTRUCTS = ("holdfast_common", "holdfast_rules", "holdfast_constructs")


def installed_wheel(folder: Path) -> Path:
    """A folder with the content of the constructs' wheel and of those that it needs, as pip would have put it there."""
    for wheel in build(folder):
        if wheel.name.split("-")[0] in OF_CONSTRUCTS:
            zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def run_with_wheel(app: Path, *, site: Path, out: Path, repository: Path) -> subprocess.CompletedProcess[str]:
    """Run an app with the wheel's content before everything else, and nothing of the checkout."""
    hide = (
        f"import sys; sys.path = [p for p in sys.path if not p.startswith({str(repository)!r}) or 'site-packages' in p]"
    )
    run = f"{hide}; sys.path[:0] = [{str(site)!r}]; import runpy; runpy.run_path({str(app)!r}, run_name='__main__')"
    environment = {**os.environ, "CDK_OUTDIR": str(out), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, "-P", "-c", run],
        cwd=app.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
