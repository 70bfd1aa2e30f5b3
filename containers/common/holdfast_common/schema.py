"""The fields of an event, what they may hold, and the line they are written as: shared by writer and reader."""

import json
import math
from collections.abc import Mapping
from typing import Any

VERSION = 1
SOURCES = ("control-plane", "lifecycle", "job", "agent", "cli")

Detail = Mapping[str, "str | int | float | bool"]

WRITTEN_ORDER = (
    "version",
    "time_ns",
    "source",
    "cluster",
    "node",
    "job",
    "kind",
    "fault",
    "evidence",
    "action",
    "duration_s",
    "detail",
)
_TEXTS = ("kind", "cluster", "node", "job", "fault", "evidence", "action")


class EventError(ValueError):
    """A line is not an event of this schema."""


def check_fields(values: Mapping[str, Any]) -> None:
    """Raise EventError unless all fields are there and hold what they may."""
    if not is_integer(values["time_ns"]) or not 0 <= values["time_ns"] < 1 << 63:
        raise EventError(f"time_ns must be UTC nanoseconds since 1970, got {values['time_ns']!r}")
    if values["source"] not in SOURCES:
        raise EventError(f"source must be one of {', '.join(SOURCES)}, got {values['source']!r}")
    for name in _TEXTS:
        if not isinstance(values[name], str):
            raise EventError(f"{name} must be a string, got {values[name]!r}")
    if not values["kind"]:
        raise EventError("kind must not be empty")
    if values["duration_s"] is not None and not _is_finite(values["duration_s"]):
        raise EventError(f"duration_s must be a finite number of seconds or null, got {values['duration_s']!r}")
    if not isinstance(values["detail"], Mapping):
        raise EventError(f"detail must be an object, got {values['detail']!r}")
    for key, value in values["detail"].items():
        if not isinstance(key, str) or not (isinstance(value, (str, bool)) or _is_finite(value)):
            raise EventError(f"detail.{key} must be a string, a finite number or a boolean, got {value!r}")


def to_line(values: Mapping[str, Any]) -> str:
    """Checked fields as one line, without the line end."""
    ordered = {name: values[name] for name in WRITTEN_ORDER}
    return json.dumps(ordered | {"detail": dict(values["detail"])}, separators=(",", ":"), allow_nan=False)


def is_integer(value: object) -> bool:
    """Whether it is a whole number; JSON's true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond what a float holds
        return False
