"""
Make this checkout's packages importable and its command runnable in the virtual environment.

A .pth file with the package roots and one entry script: what an editable install would do, in
milliseconds, with nothing built and no network. Run with the environment's own Python.
"""

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = (ROOT, *(ROOT / folder for folder in ("constructs", "containers/common", "containers/training", "lifecycle")))


def main() -> None:
    site_packages = Path(sysconfig.get_path("purelib"))
    (site_packages / "holdfast-checkout.pth").write_text("".join(f"{root}\n" for root in ROOTS))
    command = Path(sys.executable).parent / "holdfast"
    command.write_text(f"#!{sys.executable}\nfrom holdfast.cli import main\n\nmain()\n")
    command.chmod(0o755)


main()
