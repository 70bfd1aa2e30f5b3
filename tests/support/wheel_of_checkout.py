"""The wheel of this checkout as another app has it: its content before everything else, and nothing of the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

DEADLINE_S = 600
"""For a program that hangs, however busy the machine is."""


def installed_wheel(repository: Path, folder: Path) -> Path:
    """A folder with the content of the wheel, as pip would have put it into site-packages."""
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository, capture_output=True, check=True, timeout=DEADLINE_S,
    ).stdout.decode()  # fmt: skip
    for name in files.split("\0"):
        if name and (repository / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((repository / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source],
        check=True, timeout=DEADLINE_S,
    )  # fmt: skip
    (wheel,) = folder.glob("holdfast-*.whl")
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
