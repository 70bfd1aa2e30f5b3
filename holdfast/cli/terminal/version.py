"""The version: of the distribution, or of the checkout that this is."""

from pathlib import Path


def installed_version() -> str:
    """As pyproject.toml says it. What reads it is loaded only now: every start of a command would pay for it."""
    checkout = Path(__file__).resolve().parents[3] / "pyproject.toml"
    if checkout.is_file():
        import tomllib

        return str(tomllib.loads(checkout.read_text())["project"]["version"])
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"
