from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for what all homes of a user share: ``${XDG_CACHE_HOME:-~/.cache}/holdfast``."""
    chosen = environment.get("XDG_CACHE_HOME", "")
    # A relative path is to be ignored, as the XDG Base Directory Specification has it.
    base = Path(chosen) if chosen.startswith("/") else Path(environment.get("HOME") or Path.home()) / ".cache"
    return base / "holdfast"
