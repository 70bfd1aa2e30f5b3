"""Template under decided conditions: absent resources removed, ``Fn::If`` replaced."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.validation.cloudformation import LinedList, LinedMapping
from holdfast.validation.from_template.conditions import UnknownConditionError

Holds = Callable[[str], bool]


def settled(body: Mapping[str, Any], holds: Holds) -> Mapping[str, Any]:
    """
    Template body; ``holds`` returns the result of a condition, or raises UnknownConditionError, which keeps the
    function.
    """
    result = _copy(body)
    for section in ("Resources", "Outputs"):
        entries = body.get(section)
        if not isinstance(entries, Mapping):
            continue
        kept = LinedMapping(getattr(entries, "line", 0))
        for name, entry in entries.items():
            found = _entry(entry, holds)
            if found is not None:
                kept[name] = found
                kept.lines[name] = _line(entries, name)
        result[section] = kept
    return result


def _entry(entry: Any, holds: Holds) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    condition = entry.get("Condition")
    if isinstance(condition, str):
        try:
            if not holds(condition):
                return None
        except UnknownConditionError:
            return _chosen(entry, holds)
        without = _copy(entry)
        del without["Condition"]
        return _chosen(without, holds)
    return _chosen(entry, holds)


def _chosen(value: Any, holds: Holds) -> Any:
    """Value with each ``Fn::If`` replaced; the same object without one."""
    if isinstance(value, list):
        items = [_chosen(item, holds) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        result = LinedList(getattr(value, "line", 0))
        result += items
        result.lines = [_branch_line(value, index, holds) for index in range(len(value))]
        return result
    if not isinstance(value, Mapping):
        return value
    branch = _branch(value, holds)
    if branch is not None:
        return _chosen(value["Fn::If"][branch], holds)
    pairs = {key: _chosen(item, holds) for key, item in value.items()}
    if all(pairs[key] is value[key] for key in value):
        return value
    mapping = LinedMapping(getattr(value, "line", 0))
    mapping.update(pairs)
    mapping.lines = {key: _branch_line(value, key, holds) for key in value}
    return mapping


def _branch(value: Any, holds: Holds) -> int | None:
    """Branch of an ``Fn::If``: 1 or 2; None if it is malformed or undecided."""
    if not (isinstance(value, Mapping) and len(value) == 1):
        return None
    argument = value.get("Fn::If")
    if not (isinstance(argument, list) and len(argument) == 3 and isinstance(argument[0], str)):
        return None
    try:
        return 1 if holds(argument[0]) else 2
    except UnknownConditionError:
        return None


def _branch_line(holder: Any, key: Any, holds: Holds) -> int:
    """Line of an entry inside ``Fn::If``."""
    value = holder[key]
    branch = _branch(value, holds)
    return _line(holder, key) if branch is None else _branch_line(value["Fn::If"], branch, holds)


def _line(holder: Any, key: Any) -> int:
    lines = getattr(holder, "lines", None)
    return lines[key] if lines else 0


def _copy(value: Mapping[str, Any]) -> LinedMapping:
    result = LinedMapping(getattr(value, "line", 0))
    result.update(value)
    result.lines = dict(getattr(value, "lines", {}))
    return result
