"""The version: of the distribution, or of the checkout that this is."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tomllib


def installed_version() -> str:
    """As pyproject.toml says it."""
    checkout = Path(__file__).resolve().parents[3] / "pyproject.toml"
    if checkout.is_file():
        return str(tomllib.loads(checkout.read_text())["project"]["version"])
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"
