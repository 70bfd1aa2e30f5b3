"""The CDK app that synthesises an environment: that of the user's repository, else Holdfast's own."""

import importlib.util
from importlib import metadata
from pathlib import Path

from holdfast.cli.terminal import CommandError
from holdfast.environments import repository_of
from holdfast.localcloud.home import installed_version

WHEELS = tuple(f"holdfast-{name}" for name in ("agent", "common", "constructs", "operator", "rules", "runtime"))
"""Distributions beside that of the command line, of the same version."""
_SHIPPED = Path(__file__).resolve().parent / "data"

BUILT_IN = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).resolve().parents[3]
"""Folder with app.py, cdk.json and package-lock.json: in the wheel beside this file, in a checkout at its top."""


def app_folder(environment_file: Path) -> Path:
    """Return the folder of the app: the file's repository if it has an ``app.py``, else the built-in one."""
    own = repository_of(environment_file)
    return own if own is not None and (own / "app.py").is_file() else BUILT_IN


def check_packages() -> None:
    """Raises: CommandError: the wheel with the stacks is not installed, or wheels are of several versions."""
    version = installed_version()
    if importlib.util.find_spec("holdfast_stacks") is None:
        raise CommandError(
            "a deployment needs the package holdfast-constructs, which is not installed; "
            f"run: pip install holdfast-constructs=={version}"
        )
    found = {name: _version_of(name) for name in WHEELS}
    if others := {name: each for name, each in found.items() if each not in ("", version)}:
        got = ", ".join(f"{name} {each}" for name, each in others.items())
        raise CommandError(
            f"got {got} beside holdfast-hyperpod {version}; allowed: one version for all of them; "
            f"run: pip install {' '.join(f'{name}=={version}' for name in others)}"
        )


def _version_of(distribution: str) -> str:
    """Return the installed version; empty if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
