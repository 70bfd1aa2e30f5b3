"""Validation of request arguments by a service model's shapes, reporting every violation in AWS's words."""

import functools
import re
from collections.abc import Iterator
from typing import Any

SHOWN_ENUM_VALUES = 12
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
}
# Java's character properties, as used by the models, inside or outside of brackets.
CHARACTER_PROPERTIES = {
    r"\p{L}": r"\w",
    r"\p{M}": r"\w",
    r"\p{N}": r"\d",
    r"\p{Z}": r"\s",
    r"\p{Alnum}": "a-zA-Z0-9",
    r"\p{P}": r"!-/:-@\[-`{-~",
    r"\p{S}": r"!-/:-@\[-`{-~",
}


def violations(*, shape: Any, value: dict[str, Any], closely: bool = True) -> list[str]:
    """Return a sentence for every broken constraint; with ``closely`` also for values that are not allowed."""
    return list(_structure(shape, value, "", closely=closely))


def _check(shape: Any, value: Any, path: str, *, closely: bool) -> Iterator[str]:
    expected = JSON_TYPES.get(shape.type_name)
    if expected and (not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected)):
        reported = f"Value {_quoted(value)} at '{path}' failed to satisfy constraint"
        yield f"{reported}: Member must be of type {shape.type_name}"
        return
    if closely:
        yield from _own(shape, value, path)
    match shape.type_name:
        case "structure":
            yield from _structure(shape, value, path, closely=closely)
        case "list":
            for index, item in enumerate(value, 1):
                yield from _check(shape.member, item, f"{path}.{index}.member", closely=closely)
        case "map":
            for key, item in value.items():
                yield from _check(shape.key, key, f"{path}.{key}.key", closely=closely)
                yield from _check(shape.value, item, f"{path}.{key}.value", closely=closely)


def _structure(shape: Any, value: dict[str, Any], path: str, *, closely: bool) -> Iterator[str]:
    if shape.is_document_type:
        return
    for name in shape.required_members:
        if value.get(name) is None and not shape.members[name].metadata.get("idempotencyToken"):
            yield (f"Value null at '{_member_path(path, name)}' failed to satisfy constraint: Member must not be null")
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from _check(member, value[name], _member_path(path, name), closely=closely)
    given = [name for name in shape.members if value.get(name) is not None]
    if shape.is_tagged_union and len(given) != 1:
        yield (f"Value at '{path}' failed to satisfy constraint: exactly one of {', '.join(shape.members)} must be set")


def _own(shape: Any, value: Any, path: str) -> Iterator[str]:
    limits = shape.metadata
    kind = shape.type_name
    reported = f"Value {_quoted(value)} at '{path}' failed to satisfy constraint: "
    if kind in ("string", "list", "map", "blob"):
        if len(value) < limits.get("min", 0):
            yield f"{reported}Member must have length greater than or equal to {limits['min']}"
        if "max" in limits and len(value) > limits["max"]:
            yield f"{reported}Member must have length less than or equal to {limits['max']}"
    elif kind in ("integer", "long", "float", "double"):
        if "min" in limits and value < limits["min"]:
            yield f"{reported}Member must have value greater than or equal to {limits['min']}"
        if "max" in limits and value > limits["max"]:
            yield f"{reported}Member must have value less than or equal to {limits['max']}"
    if kind != "string":
        return
    allowed = limits.get("enum")
    if allowed and value not in allowed:
        yield f"{reported}Member must satisfy enum value set: [{_enum(allowed, value)}]"
    pattern = limits.get("pattern")
    if pattern and not _matches(pattern, value):
        yield f"{reported}Member must satisfy regular expression pattern: {pattern}"


def _enum(allowed: list[str], value: str) -> str:
    if len(allowed) <= SHOWN_ENUM_VALUES:
        return ", ".join(allowed)
    stem = value.rpartition(".")[0]
    near = [name for name in allowed if stem and name.startswith(f"{stem}.")] or list(allowed)
    shown = near[:SHOWN_ENUM_VALUES]
    return ", ".join(shown) + f", ... {len(allowed) - len(shown)} more"


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(value) is not None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    translated = pattern
    for java, python in CHARACTER_PROPERTIES.items():
        translated = translated.replace(java, python)
    try:
        return re.compile(translated)
    except re.error:
        return None  # a few patterns are malformed in the model itself; AWS cannot mean them literally


def _member_path(path: str, name: str) -> str:
    member = name[:1].lower() + name[1:]
    return f"{path}.{member}" if path else member


def _quoted(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"'[{len(value)} members]'" if isinstance(value, dict) else f"'[{len(value)} items]'"
    return f"'{str(value)[:200]}'"
