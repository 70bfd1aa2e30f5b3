"""
Make this checkout's packages importable and its commands runnable in the virtual environment.

A .pth file with the package roots and an entry script for each command: what an editable install would do, in
milliseconds, with nothing built and no network. Run with the environment's own Python.
"""

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {"holdfast": "holdfast.cli", "holdfast-run": "holdfast_runtime.launcher.__main__"}
"""As in pyproject.toml: the module whose ``main`` it is."""
ROOTS = (
    ROOT,
    *(ROOT / folder for folder in ("constructs", "stacks", "containers/common", "containers/training", "lifecycle")),
)


def main() -> None:
    site_packages = Path(sysconfig.get_path("purelib"))
    (site_packages / "holdfast-checkout.pth").write_text("".join(f"{root}\n" for root in ROOTS))
    for name, module in COMMANDS.items():
        command = Path(sys.executable).parent / name
        command.write_text(f"#!{sys.executable}\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n")
        command.chmod(0o755)


main()
