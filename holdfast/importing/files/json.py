"""JSON as strictly as the service takes it: one value, keys once, no comments, bounded; a refusal is one sentence."""

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
    """What was given is no configuration; the text says what it is and what to do."""


def read_json(path: Path) -> Any:
    """The value in a file. Raises: NotUsableError: there is none."""
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
    """
    The value of a JSON text.

    Args:
        origin: What the text is, for messages: a path or an option.

    Raises:
        NotUsableError: it is none.
    """
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
    """Return True if a number is one that JSON can say; 1e999 is read as infinite."""
    return math.isfinite(value)
