"""Lines about one field of a manifest, alike for all kinds."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any


def number(
    found: Mapping[str, Any], name: str, path: str, *, least: int, most: int | None = None, default: int | None = None
) -> Iterator[str]:
    value = found.get(name, default)
    if value is None and name not in found:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        allowed = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
        yield f"{path}.{name}: got {shown(value)}; allowed: {allowed}"


def unknown_fields(found: Mapping[str, Any], known: Collection[str], path: str) -> Iterator[str]:
    for name in sorted(found.keys() - known, key=str):
        yield f"{path}.{name}: unknown field; allowed: {', '.join(sorted(known))}"


def shown(value: object) -> str:
    return "nothing" if value is None else repr(value)[:60]
