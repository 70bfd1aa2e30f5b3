"""
``Fn::ForEach`` unrolled: a fragment once per value of a collection.

Source: template reference, "Fn::ForEach" (transform AWS::LanguageExtensions).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.validation.cloudformation import LinedList, LinedMapping

EXTENSIONS = "AWS::LanguageExtensions"
_LOOP = "Fn::ForEach::"
_MOST = 5000
"""Fragments; a template has at most 500 resources."""


class _TooManyError(Exception):
    pass


def transforms(body: Mapping[str, Any]) -> frozenset[str]:
    written = body.get("Transform", [])
    names = (each.get("Name") if isinstance(each, Mapping) else each for each in _list(written))
    return frozenset(map(str, names))


def unrolled(body: LinedMapping) -> LinedMapping:
    """Template body without loops, as far as their collections are known."""
    if EXTENSIONS not in transforms(body):
        return body
    lists = _parameters(body)
    result = LinedMapping(body.line)
    left = [_MOST]
    try:
        for key, value in body.items():
            looping = key in ("Resources", "Conditions", "Outputs")
            result[key] = _unrolled(value, {}, lists, left) if looping else value
    except _TooManyError:
        return body
    result.lines = dict(body.lines)
    return result


def _parameters(body: Mapping[str, Any]) -> Mapping[str, list[str]]:
    """Defaults of list parameters."""
    written = body.get("Parameters")
    found = {}
    for name, definition in written.items() if isinstance(written, Mapping) else ():
        if isinstance(definition, Mapping) and definition.get("Type") == "CommaDelimitedList":
            default = definition.get("Default")
            if isinstance(default, str | int):
                found[name] = [part.strip() for part in str(default).split(",")]
    return found


def _unrolled(value: Any, names: Mapping[str, str], lists: Mapping[str, list[str]], left: list[int]) -> Any:
    if isinstance(value, str):
        return _replaced(value, names)
    if isinstance(value, list):
        items = LinedList(getattr(value, "line", 0))
        items.lines = list(getattr(value, "lines", [0] * len(value)))
        items += [_unrolled(item, names, lists, left) for item in value]
        return items
    if not isinstance(value, Mapping):
        return value
    if list(value) == ["Ref"] and isinstance(value["Ref"], str) and value["Ref"] in names:
        return names[value["Ref"]]
    result = LinedMapping(getattr(value, "line", 0))
    lines: Mapping[str, int] = getattr(value, "lines", {})
    for key, item in value.items():
        for name, inner, line in _entries(key, item, names, lists, left, lines.get(key, 0)):
            result[name] = inner
            result.lines[name] = line
    return result


def _entries(
    key: str, item: Any, names: Mapping[str, str], lists: Mapping[str, list[str]], left: list[int], line: int
) -> Iterator[tuple[str, Any, int]]:
    loop = _loop(key, item, names, lists)
    if loop is None:
        yield _replaced(key, names), _unrolled(item, names, lists, left), line
        return
    identifier, collection, fragment = loop
    for each in collection:
        left[0] -= 1
        if left[0] < 0:
            raise _TooManyError
        inner = {**names, identifier: each}
        for name, value in fragment.items():
            yield from _entries(name, value, inner, lists, left, getattr(fragment, "lines", {}).get(name, line))


def _loop(
    key: str, item: Any, names: Mapping[str, str], lists: Mapping[str, list[str]]
) -> tuple[str, list[str], Mapping[str, Any]] | None:
    if not (key.startswith(_LOOP) and isinstance(item, list) and len(item) == 3):
        return None
    identifier, collection, fragment = item
    if isinstance(collection, Mapping) and list(collection) == ["Ref"]:
        collection = lists.get(str(collection["Ref"]))
    if not (isinstance(identifier, str) and isinstance(collection, list) and isinstance(fragment, Mapping)):
        return None
    texts = [_replaced(each, names) if isinstance(each, str) else each for each in collection]
    texts = [names.get(each["Ref"], each) if isinstance(each, Mapping) and "Ref" in each else each for each in texts]
    if not all(isinstance(each, str | int) for each in texts):
        return None
    return identifier, [str(each) for each in texts], fragment


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"${{{name}}}", value).replace(f"&{{{name}}}", re.sub(r"[^A-Za-z0-9]", "", value))
    return text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
