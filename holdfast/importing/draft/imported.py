"""Imported environment file, with comments at its settings."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

WIDTH = 118
LONGEST_KEY = 1024
"""YAML reads a longer one only after a question mark (YAML 1.2.2, 7.4.2)."""
LONGEST_LINE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Note:
    path: str
    """The setting it is about, groups and datasets by name."""
    text: str
    decide: bool = False
    """The file needs a decision of the user. Default: no, the note only reports what was left out"""

    def __str__(self) -> str:
        return f"{self.path}: {self.comment}" if self.path else self.comment

    @property
    def comment(self) -> str:
        return f"DECIDE: {self.text}" if self.decide else self.text


@dataclass(kw_only=True)
class Draft:
    """Settings in the file's order, and notes."""

    document: dict[str, Any]
    notes: list[Note] = field(default_factory=list)
    as_it_was: str = ""
    """State of the cluster at its import. Default: not described"""

    def note(self, path: str, text: str, *, decide: bool = False) -> None:
        note = Note(path=path, text=text, decide=decide)
        if note not in self.notes:
            self.notes.append(note)

    def leave_out(self, path: str, key: str, value: Any) -> None:
        """Note a property without a setting: a question, or a remark if no service reads it."""
        text = f"{key} is left out, the file has no setting for it: {short(value)}"
        self.note(path, text, decide=not key.startswith("_"))


def short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def render(imported: Draft, *, origin: str) -> str:
    """Render YAML; a note stands above its setting, or above the nearest one. ``origin`` is for the first line."""
    places = set(_places(imported.document, ""))
    by_place: dict[str, list[Note]] = {}
    for note in imported.notes:
        by_place.setdefault(_nearest(note.path, places), []).append(note)
    head = _wrapped(f"Imported from {origin}. Comments say what could not be carried over.", "")
    head += _wrapped(f"As it was: {imported.as_it_was}", "") if imported.as_it_was else []
    head += [line for note in by_place.get("", []) for line in _wrapped(str(note), "")]
    return "\n".join([*head, *_mapping(imported.document, "", "", by_place)]) + "\n"


def _nearest(path: str, places: set[str]) -> str:
    while path and path not in places:
        path = path.rpartition(".")[0]
    return path


def _places(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield _join(path, key)
            yield from _places(inner, _join(path, key))
    elif isinstance(value, list):
        for item in value:
            if _is_named(item):
                yield _join(path, item["name"])
                yield from _places(item, _join(path, item["name"]))


def _mapping(value: dict[str, Any], path: str, indent: str, notes: dict[str, list[Note]]) -> Iterator[str]:
    for key, inner in value.items():
        at = _join(path, key)
        if not path and isinstance(inner, dict):
            yield ""
        yield from _comments(at, indent, notes)
        name = _key(key, indent)
        line = f"{name} {_flow(inner)}"
        if isinstance(inner, dict) and inner and (len(line) > WIDTH or not _is_flat(inner, at, notes)):
            yield name
            yield from _mapping(inner, at, indent + "  ", notes)
        elif isinstance(inner, list) and any(map(_is_named, inner)):
            yield name
            for item in inner:
                yield from _item(item, at, indent + "  ", notes)
        else:
            yield line


def _item(item: dict[str, Any], path: str, indent: str, notes: dict[str, list[Note]]) -> Iterator[str]:
    at = _join(path, item["name"])
    yield from _comments(at, indent, notes)
    if _is_flat(item, at, notes) and len(indent) + len(_flow(item)) < WIDTH:
        yield f"{indent}- {_flow(item)}"
        return
    lines = list(_mapping(item, at, indent + "  ", notes))
    first = next(index for index, line in enumerate(lines) if not line.lstrip().startswith("#"))
    yield from lines[:first]
    yield f"{indent}- {lines[first].lstrip()}"
    yield from lines[first + 1 :]


def _comments(path: str, indent: str, notes: dict[str, list[Note]]) -> list[str]:
    return [line for note in notes.get(path, []) for line in _wrapped(note.comment, indent)]


def _wrapped(text: str, indent: str) -> list[str]:
    lines = textwrap.wrap(
        "".join(one if one.isprintable() else " " for one in text),
        WIDTH - len(indent) - 2,
        subsequent_indent="  ",
        break_on_hyphens=False,  # URIs and ids stay whole
        break_long_words=False,
    )
    return [f"{indent}# {line}" for line in lines]


def _is_flat(value: dict[str, Any], path: str, notes: dict[str, list[Note]]) -> bool:
    if any(place.startswith(f"{path}.") for place in notes) or len(value) > 5:
        return False
    return not any(
        isinstance(inner, dict) or (isinstance(inner, list) and any(map(_is_named, inner))) for inner in value.values()
    )


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value


def _join(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


def _key(key: str, indent: str) -> str:
    text = _flow(key)
    return f"{indent}{text}:" if len(text) <= LONGEST_KEY else f"{indent}? {text}\n{indent}:"


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(
        value,
        default_style='"' if isinstance(value, str) and not _reads_back(value) else None,
        default_flow_style=True,
        sort_keys=False,
        width=LONGEST_LINE,
        allow_unicode=False,
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _reads_back(value: str) -> bool:
    try:
        return bool(yaml.safe_load(value) == value)
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError):
        return False
