"""Strict JSON: one value, unique keys, no comments, bounded."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.validation.template_files import json_fault

LARGEST_BYTES = 4 * 1024 * 1024
"""A request of CreateCluster with 100 groups has some 100 KiB."""
BOMS = (b"\xff\xfe", b"\xfe\xff")


class NotUsableError(ValueError):
    """Invalid configuration, with reason and remedy."""


def read_json(path: Path) -> Any:
    """Parse a file. Raises: NotUsableError: unreadable, or not JSON."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise NotUsableError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(raw) > LARGEST_BYTES:
        raise NotUsableError(f"{path} has more than {LARGEST_BYTES >> 20} MiB: it is no request of CreateCluster")
    if raw.startswith(BOMS):
        raise NotUsableError(f"{path} is UTF-16: save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise NotUsableError(f"{path}:{line}: bytes that are no UTF-8; save it as UTF-8") from None
    return value_of(text, origin=str(path))


def value_of(text: str, *, origin: str) -> Any:
    """Parse a text. Raises: NotUsableError: not JSON; the message names ``origin``, a path or an option."""
    if not text.strip():
        raise NotUsableError(f"{origin} is empty")
    try:
        value = json.loads(text, object_pairs_hook=_object(origin), parse_constant=_constant(origin))
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        line, cause = json_fault(text, error)
        raise NotUsableError(f"{origin}:{line}: no JSON: {cause}") from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise NotUsableError(f"{origin}: got {half}; allowed: characters; it is half of a pair, remove it") from None
    except NotUsableError:
        raise
    except ValueError:
        raise NotUsableError(
            f"{origin} holds a number of thousands of digits; write the number that is meant"
        ) from None
    except RecursionError:
        raise NotUsableError(f"{origin} is nested too deeply to be a request of CreateCluster") from None
    return value


def _object(origin: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> Mapping[str, Any]:
        made: dict[str, Any] = {}
        for key, value in items:
            if key in made:
                raise NotUsableError(f"{origin}: {key} stands twice in one object; remove one of the two")
            made[key] = value
        return made

    return pairs


def _constant(origin: str) -> Any:
    def refused(name: str) -> float:
        raise NotUsableError(f"{origin}: {name} is no number of JSON") from None

    return refused


def is_finite(value: float) -> bool:
    """Return False for numbers that JSON cannot express, such as 1e999."""
    return math.isfinite(value)
