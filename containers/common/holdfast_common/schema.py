"""Event fields: validation and serialization, for writers and readers."""

import json
import sys
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
_LARGEST = sys.float_info.max
_LATEST_NS = 1 << 63
_LONGEST_S = _LATEST_NS / 1e9
"""292 years: sums and squares of durations stay finite."""
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class EventError(ValueError): ...


def check_fields(values: Mapping[str, Any]) -> None:
    time_ns, duration_s, detail = values["time_ns"], values["duration_s"], values["detail"]
    if not is_integer(time_ns) or not 0 <= time_ns < _LATEST_NS:
        raise EventError(f"time_ns must be UTC nanoseconds since 1970, got {shown(time_ns)}")
    if values["source"] not in SOURCES:
        raise EventError(f"source must be one of {', '.join(SOURCES)}, got {shown(values['source'])}")
    for name in _TEXTS:
        if not isinstance(values[name], str):
            raise EventError(f"{name} must be a string, got {shown(values[name])}")
    if not values["kind"]:
        raise EventError("kind must not be empty")
    if duration_s is not None and not (_is_finite(duration_s) and -_LONGEST_S < duration_s < _LONGEST_S):
        raise EventError(
            f"duration_s must be a finite number of seconds, of less than 292 years, or null, got {shown(duration_s)}"
        )
    if not isinstance(detail, (dict, Mapping)):
        raise EventError(f"detail must be an object, got {shown(detail)}")
    for key, value in detail.items():
        if not isinstance(key, str) or not (isinstance(value, (str, bool)) or _is_finite(value)):
            raise EventError(f"detail.{key} must be a string, a finite number or a boolean, got {shown(value)}")


def to_line(values: Mapping[str, Any]) -> str:
    ordered = dict(values) if tuple(values) == WRITTEN_ORDER else {name: values[name] for name in WRITTEN_ORDER}
    ordered["detail"] = dict(ordered["detail"])
    return _ENCODE(ordered)


def is_integer(value: object) -> bool:
    """True for an integer; JSON's true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    """True if a float can hold it: larger numbers break computations."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def shown(value: object) -> str:
    try:
        return repr(value)[:120]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} too large to show"
