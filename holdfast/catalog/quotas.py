"""Limits and lists that the services document and no API model holds; the data and its sources are in the JSON."""

import functools
import json
from pathlib import Path
from typing import Any

LIMITS_FILE = Path(__file__).with_name("limits.json")


def limits(name: str) -> Any:
    """The values of an entry of the data file: a list, or a mapping."""
    return _data()[name]["values"]


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(LIMITS_FILE.read_text()))
