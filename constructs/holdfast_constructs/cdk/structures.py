"""L1 structures from properties with CloudFormation's names."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


def structure(kind: type[T], properties: Mapping[str, Any]) -> T:
    return kind(**arguments(kind, properties))


def arguments(kind: type, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an L1, or of a structure of one."""
    known = _parameters(kind)
    found = {}
    for key, value in properties.items():
        name, inner = known[key.lower()]
        if inner is not None:
            value = [structure(inner, each) for each in value] if isinstance(value, list) else structure(inner, value)
        found[name] = value
    return found


@functools.cache
def _parameters(kind: type) -> Mapping[str, tuple[str, type | None]]:
    """Name and structure, by CloudFormation's name in lower case."""
    hints = get_type_hints(vars(kind)["__init__"])
    return {name.replace("_", ""): (name, next(_structures(hint), None)) for name, hint in hints.items()}


def _structures(hint: Any) -> Iterator[type]:
    if hasattr(hint, "__jsii_name_mapping__"):
        yield hint
    for each in get_args(hint):
        yield from _structures(each)
