"""
Make this checkout's packages and commands available in the virtual environment.

Writes a .pth file, an entry script per command, and a metadata folder per wheel: as editable installs, in milliseconds,
without build or network. Run with the environment's own Python.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

from distributions import Distribution, distributions, package_roots, site_url


def main() -> None:
    site_packages = Path(sysconfig.get_path("purelib"))
    (site_packages / "holdfast-checkout.pth").write_text("".join(f"{root}\n" for root in package_roots()))
    for each in distributions().values():
        _note(site_packages, each)
        for command, target in each.scripts.items():
            module, _, function = target.partition(":")
            _entry_script(Path(sys.executable).parent / command, module, function)


def _note(site_packages: Path, distribution: Distribution) -> None:
    """Metadata for ``importlib.metadata`` and ``pip list``."""
    name, version = distribution.name, distribution.version
    stem = name.replace("-", "_")
    for old in site_packages.glob(f"{stem}-*.dist-info"):
        shutil.rmtree(old)
    note = site_packages / f"{stem}-{version}.dist-info"
    note.mkdir()
    url = f"Project-URL: Documentation, {site_url()}\n" if site_url() else ""
    (note / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{url}")


def _entry_script(command: Path, module: str, function: str) -> None:
    call = f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
    command.write_text(f"#!{sys.executable}\n{call}")
    command.chmod(0o755)


main()
