"""Causes of unknown values in a template, so that each cause is reported once."""

from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import LinedList, LinedMapping


def cause_of(body: object, place: str) -> str:
    value = _at(body, place)
    names = dict.fromkeys(_unknown(value))
    if names:
        return f"{' and '.join(list(names)[:3])} {'is' if len(names) == 1 else 'are'} not known before deployment"
    if isinstance(value, str):
        return f"{value} is unknown here"
    return f"{place or 'a value'} is not known before deployment"


def _at(body: object, place: str) -> object:
    """Value at a path, or around it if that is inside an unknown value."""
    value = body
    for part in place.split("."):
        below: object = None
        if isinstance(value, LinedMapping):
            below = value.get(part)
        elif isinstance(value, LinedList) and part.isdigit() and int(part) < len(value):
            below = value[int(part)]
        if below is None:
            return value if _is_function(value) else None
        value = below
    return value


def _is_function(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))


def _unknown(value: Any) -> list[str]:
    found: list[str] = []
    if isinstance(value, str) and "{{resolve:" in value:
        found.append("a dynamic reference")
    elif isinstance(value, list):
        for item in value:
            found += _unknown(item)
    elif isinstance(value, Mapping) and _is_function(value):
        key, argument = next(iter(value.items()))
        found += _function(key, argument)
    return found


def _function(key: str, argument: Any) -> list[str]:
    match key:
        case "Ref":
            return [f"the value of {argument}"]
        case "Fn::GetAtt":
            return [f"the attribute {'.'.join(map(str, argument)) if isinstance(argument, list) else argument}"]
        case "Fn::ImportValue":
            return [f"the export {argument}" if isinstance(argument, str) else "what another stack exports"]
        case "Fn::GetAZs":
            return ["the list of zones"]
        case "Fn::Sub" | "Fn::Join" | "Fn::Select" | "Fn::Split" | "Fn::FindInMap" | "Fn::If":
            return _unknown(argument) or [f"what {key} gives"]
        case _:
            return [f"what {key} gives"]
