"""Where the files are that nodes and images get: they are data of these stacks, not code that they import."""

from pathlib import Path

_SHIPPED = Path(__file__).resolve().parent / "data"

SOURCES = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).resolve().parents[2]
"""The folder with ``lifecycle`` and ``containers``: in the wheel beside this file, in a checkout at its top."""
