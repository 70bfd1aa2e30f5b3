"""Validation by registry schemas, as CloudFormation does before it calls a service."""

import difflib
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.catalog.facts import Schema
from holdfast.validation.cloudformation.graph import Reference, Text
from holdfast.validation.cloudformation.unresolved import UNRESOLVED
from holdfast.validation.cloudformation.values import Node

MOST_SHOWN = 12
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str, int, float, bool),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


@dataclass(frozen=True, kw_only=True)
class Violation:
    kind: str
    """``unknown``, ``missing`` or ``value``."""
    path: str
    given: str
    allowed: str
    fix: str


def violations(schema: Schema, node: Node) -> Iterator[Violation]:
    names = node.keys()
    if names is None:
        return
    read_only = {name for name in schema.attributes if "." not in name}
    writable = {name: each for name, each in schema.properties.items() if name not in read_only}
    for name in names:
        if name in writable:
            yield from _judge(schema, writable[name], node.get(name))
        elif name in schema.properties:
            yield Violation(
                kind="unknown",
                path=f"{node.path}.{name}",
                given=f"{name}, which is read-only",
                allowed=f"the properties of {schema.type}",
                fix=f"remove {name}",
            )
        else:
            yield _unknown(schema.type, name, writable, node.path)
    for name in schema.body.get("required", ()):
        if name not in names and name not in read_only:
            yield _missing(name, node.path, schema.type)
    yield from _together(schema.body, names, node.path)


def _judge(schema: Schema, raw: Mapping[str, Any], node: Node) -> Iterator[Violation]:
    part = schema.resolved(raw)
    value = node.value
    if value is UNRESOLVED or isinstance(value, Reference | Text) or not node.present:
        return
    wrong_kind = _kind_of(part, value)
    if wrong_kind is not None:
        yield Violation(
            kind="value",
            path=node.path,
            given=_shown(value),
            allowed=wrong_kind,
            fix=f"write {wrong_kind}{_like(part)}",
        )
        return
    if isinstance(value, Mapping):
        yield from _object(schema, part, node, [str(key) for key in value])
    elif isinstance(value, list):
        yield from _array(schema, part, node)
    else:
        yield from _scalar(part, node, value)
    yield from _alternatives(schema, part, node)


def _object(schema: Schema, part: Mapping[str, Any], node: Node, names: list[str]) -> Iterator[Violation]:
    known: Mapping[str, Any] = part.get("properties", {})
    patterns = part.get("patternProperties", {})
    owner = node.path.rpartition(".")[2]
    for name in names:
        if name in known:
            yield from _judge(schema, known[name], node.get(name))
        elif part.get("additionalProperties") is False and not any(_search(each, name) for each in patterns):
            yield _unknown(owner, name, known, node.path)
    for name in part.get("required", ()):
        if name not in names:
            yield _missing(name, node.path, owner)
    yield from _together(part, names, node.path)


def _array(schema: Schema, part: Mapping[str, Any], node: Node) -> Iterator[Violation]:
    entries = node.items()
    if entries is None:
        return
    least, most = part.get("minItems"), part.get("maxItems")
    sure = all(_is_plain(each.value) for each in entries)
    if most is not None and len(entries) > most:
        yield _amount(node, f"{len(entries)} entries", f"at most {most}")
    if least is not None and len(entries) < least and sure:
        yield _amount(node, f"{len(entries)} entries", f"at least {least}")
    if part.get("uniqueItems") is True:
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries):
            key = entry.token
            if key in seen:
                yield Violation(
                    kind="value",
                    path=entry.path,
                    given=f"the same as entry {seen[key]}: {_shown(entry.value)}",
                    allowed="each entry once",
                    fix="remove one of the two, or write what was meant",
                )
            seen.setdefault(key, index)
    items = part.get("items")
    if isinstance(items, Mapping):
        for entry in entries:
            yield from _judge(schema, items, entry)


def _scalar(part: Mapping[str, Any], node: Node, value: Any) -> Iterator[Violation]:
    text = _as_text(value)
    choices = part.get("enum")
    if choices is not None and text not in map(_as_text, choices):
        names = sorted(map(_as_text, choices))
        meant = closest(text, names)
        shown = ", ".join(names[:MOST_SHOWN]) + (f" and {len(names) - MOST_SHOWN} more" * (len(names) > MOST_SHOWN))
        fix = f"write {meant}" if meant else f"choose one of them: {', '.join(names[:4])}"
        yield Violation(kind="value", path=node.path, given=_shown(value), allowed=f"one of {shown}", fix=fix)
        return
    if "const" in part and text != _as_text(part["const"]):
        expected = _as_text(part["const"])
        yield Violation(kind="value", path=node.path, given=_shown(value), allowed=expected, fix=f"write {expected}")
    if part.get("type") == "string" or isinstance(value, str):
        yield from _string(part, node, text)
    number = _number(value)
    if number is not None and part.get("type") != "string":
        least, most = part.get("minimum"), part.get("maximum")
        if (least is not None and number < least) or (most is not None and number > most):
            words = f"{least} to {most}" if None not in (least, most) else f"at {'least' if most is None else 'most'} "
            words += "" if None not in (least, most) else str(least if most is None else most)
            bound = least if least is not None and number < least else most
            yield Violation(
                kind="value",
                path=node.path,
                given=_shown(value),
                allowed=words,
                fix=f"write a number that is {words}; {bound} is the nearest",
            )


def _string(part: Mapping[str, Any], node: Node, text: str) -> Iterator[Violation]:
    least, most, pattern = part.get("minLength"), part.get("maxLength"), part.get("pattern")
    if most is not None and len(text) > most:
        yield _amount(node, f"{len(text)} characters", f"at most {most}")
    elif least is not None and len(text) < least:
        yield _amount(node, f"{_shown(text)} with {len(text)} characters", f"at least {least}")
    elif isinstance(pattern, str) and not _search(pattern, text):
        kind = "an ARN" if "arn:" in pattern[:8] else f"what matches {pattern}"
        fix = f"write {kind}" if kind == "an ARN" else f"correct {_shown(text)}, which has a character or form too many"
        yield Violation(kind="value", path=node.path, given=_shown(text), allowed=f"{kind} ({pattern})", fix=fix)


def _alternatives(schema: Schema, part: Mapping[str, Any], node: Node) -> Iterator[Violation]:
    """If none of several forms fits, report the violations of the closest."""
    for word in ("oneOf", "anyOf"):
        choices = [each for each in part.get(word, ()) if isinstance(each, Mapping)]
        if not choices:
            continue
        results = [list(_judge(schema, _with_type(each, part), node)) for each in choices]
        if all(results):
            yield min(results, key=lambda found: (len(found), -max(one.path.count(".") for one in found)))[0]
    for each in part.get("allOf", ()):
        if isinstance(each, Mapping) and "if" not in each:
            yield from _judge(schema, _with_type(each, part), node)


def _with_type(choice: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    return choice if "type" in choice or "$ref" in choice or "type" not in part else {**choice, "type": part["type"]}


def _together(part: Mapping[str, Any], names: Iterable[str], path: str) -> Iterator[Violation]:
    there = set(names)
    exclusive = part.get("requiredXor")
    if exclusive and len(there & set(exclusive)) != 1:
        given = " and ".join(sorted(there & set(exclusive))) or "none of them"
        words = ", ".join(exclusive)
        fix = "keep one of them" if there & set(exclusive) else "add one of them"
        yield Violation(kind="value", path=path, given=given, allowed=f"exactly one of {words}", fix=fix)
    needed = part.get("requiredOr")
    if needed and not there & set(needed):
        yield Violation(
            kind="missing",
            path=path,
            given="none of them",
            allowed=f"at least one of {', '.join(needed)}",
            fix=f"add one of {', '.join(needed)}",
        )
    for name, others in part.get("dependentExcluded", {}).items():
        for other in others:
            if name in there and other in there and name < other:
                yield Violation(
                    kind="value",
                    path=f"{path}.{other}",
                    given=f"{name} and {other}",
                    allowed="one of the two",
                    fix=f"remove {name} or {other}",
                )
    for word in ("dependentRequired", "dependencies"):
        for name, others in part.get(word, {}).items():
            for other in others if isinstance(others, list) else ():
                if name in there and other not in there:
                    yield _missing(other, path, f"what has {name}")


def _kind_of(part: Mapping[str, Any], value: object) -> str | None:
    """Expected type, if it differs; CloudFormation converts text to numbers and booleans."""
    expected = part.get("type")
    kinds = [expected] if isinstance(expected, str) else expected
    if not isinstance(kinds, list):
        return None
    for kind in kinds:
        if isinstance(value, _KINDS.get(kind, ())) and not (kind in ("integer", "number") and isinstance(value, bool)):
            return None
        if kind in ("integer", "number") and _number(value) is not None:
            return None
        if kind == "boolean" and isinstance(value, str) and value.lower() in ("true", "false"):
            return None
    words = {
        "object": "a mapping",
        "array": "a list",
        "string": "text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
    }
    return " or ".join(words.get(str(kind), str(kind)) for kind in kinds)


def _like(part: Mapping[str, Any]) -> str:
    least, most = part.get("minimum"), part.get("maximum")
    return f" from {least} to {most}" if least is not None and most is not None else ""


def _unknown(owner: str, name: str, known: Iterable[str], path: str) -> Violation:
    names = sorted(known)
    meant = closest(name, names)
    shown = ", ".join(names[:MOST_SHOWN]) + (", ..." if len(names) > MOST_SHOWN else "")
    return Violation(
        kind="unknown",
        path=f"{path}.{name}",
        given=f"{name}, which {owner} does not have",
        allowed=f"its properties: {shown}",
        fix=f"did you mean {meant}?" if meant else f"remove {name}, or move it to where it belongs",
    )


def _missing(name: str, path: str, owner: str) -> Violation:
    return Violation(
        kind="missing",
        path=path,
        given=f"no {name}",
        allowed=f"{owner} with {name}, which is required",
        fix=f"add {name}",
    )


def _amount(node: Node, given: str, allowed: str) -> Violation:
    return Violation(kind="value", path=node.path, given=given, allowed=allowed, fix=f"write {allowed} of them")


def closest(word: str, words: Iterable[str]) -> str | None:
    by_lower = {each.lower(): each for each in words}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one, start=1):
        above, row[0] = row[0], index
        for place, each in enumerate(other, start=1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (letter != each))
    return row[-1]


def _is_plain(value: object) -> bool:
    return value is not UNRESOLVED and not isinstance(value, Reference | Text)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return float(value)
    return None


def _shown(value: object) -> str:
    text = json.dumps(value, default=lambda _: "...")
    return text if len(text) <= 80 else f"{text[:77]}..."


def _search(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    for theirs, ours in _CLASSES.items():
        pattern = pattern.replace(theirs, ours)
    try:
        return None if r"\p{" in pattern else re.compile(pattern)
    except re.error:
        return None


_CLASSES = {r"\p{L}": r"\w", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{M}": r"\u0300-\u036f"}
"""Classes of characters that schemas name by Unicode's properties; only ever used inside brackets."""
