"""JSON with lines: tokens of a text that ``json`` accepts, with positions."""

import json
import re
from collections.abc import Iterator
from typing import Any

from holdfast.validation.cloudformation import DEEPEST, Fault, LinedList, LinedMapping, Unreadable, twice
from holdfast.validation.template_files.parsed import Text

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|\n|[-+\w.]+', re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None}
_MOST_FAULTS = 20


def read_json(text: str) -> Text:
    """Read a JSON object; raises Unreadable."""
    try:
        whole = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        line, cause = json_fault(text, error)
        raise Unreadable(
            line=line,
            given=f"something that is not JSON ({cause})",
            allowed="a CloudFormation template in JSON",
            fix="correct the syntax in or above this line; JSON has no comments and no trailing commas",
        ) from None
    except RecursionError:
        raise too_deep(1) from None
    except ValueError as error:
        raise Unreadable(
            line=1, given=str(error), allowed="a CloudFormation template in JSON", fix="write a plain value"
        ) from None
    if not isinstance(whole, dict):
        raise not_a_mapping(type(whole).__name__)
    return _Builder(text).read()


def json_fault(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """
    Line and cause of a fault, the same for each Python: 3.13 and newer report a trailing comma, older ones the bracket
    behind it.
    """
    end = error.pos + error.msg.startswith("Illegal trailing comma")
    before, rest = text[:end].rstrip(), text[end:].lstrip()
    if rest.startswith(("//", "/*", "#")):
        return error.lineno, "a comment, of which JSON has none; remove it"
    if not rest or error.msg.startswith("Unterminated string"):
        return error.lineno, "the text ends in the middle of a value; it was cut"
    if error.msg == "Extra data":
        return error.lineno, "something stands after the end of the value"
    if before.endswith(",") and rest[0] in "]}":
        return before.count("\n") + 1, f"a comma before {rest[0]}; remove it"
    return error.lineno, f"{error.msg[:1].lower()}{error.msg[1:]}"


def not_a_mapping(kind: str) -> Unreadable:
    return Unreadable(
        line=1,
        given=f"a {kind} at the top",
        allowed="a CloudFormation template, which has Resources",
        fix="give a template",
    )


def too_deep(line: int) -> Unreadable:
    return Unreadable(
        line=line,
        given=f"values nested more than {DEEPEST} levels deep",
        allowed="a CloudFormation template",
        fix="remove the nesting",
    )


def _refuse(constant: str) -> float:
    raise ValueError(f"the constant {constant}, which is no JSON")


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._open: list[LinedMapping | LinedList] = []
        self._keys: list[str | None] = []
        self._faults: list[Fault] = []

    def read(self) -> Text:
        root: LinedMapping | None = None
        for match in _WORD.finditer(self._text):
            word = match[0]
            if word == "\n":
                self._line += 1
            elif word in "{[":
                container = LinedMapping(self._line) if word == "{" else LinedList(self._line)
                self._put(container)
                if root is None and isinstance(container, LinedMapping):
                    root = container
                self._open.append(container)
                self._keys.append(None)
                if len(self._open) > DEEPEST:
                    raise too_deep(self._line)
            elif word in "}]":
                self._open.pop()
                self._keys.pop()
                if self._open and isinstance(self._open[-1], LinedMapping):
                    self._keys[-1] = None
            else:
                self._scalar(word)
        assert root is not None
        return Text(body=root, faults=tuple(self._faults[:_MOST_FAULTS]))

    def _scalar(self, word: str) -> None:
        if word[0] != '"':
            self._put(_CONSTANTS[word] if word in _CONSTANTS else json.loads(word))
            return
        value = word[1:-1] if "\\" not in word else json.loads(word)
        holder = self._open[-1]
        if isinstance(holder, LinedMapping) and self._keys[-1] is None:
            self._key(holder, value)
        else:
            self._put(value)

    def _key(self, holder: LinedMapping, key: str) -> None:
        if key in holder:
            path = [len(each) - 1 if isinstance(each, LinedList) else key for each, key in self._places()]
            self._faults.append(twice([*path, key], self._line, holder.lines[key]))
        holder.lines[key] = self._line
        self._keys[-1] = key

    def _put(self, value: Any) -> None:
        if not self._open:
            return
        holder = self._open[-1]
        if isinstance(holder, LinedList):
            holder.lines.append(self._line)
            holder.append(value)
            return
        key = self._keys[-1]
        assert key is not None
        holder[key] = value
        if not isinstance(value, LinedMapping | LinedList):
            self._keys[-1] = None

    def _places(self) -> Iterator[tuple[LinedMapping | LinedList, str]]:
        for holder, key in zip(self._open[:-1], self._keys[:-1], strict=True):
            yield holder, key or ""


__all__ = ["json_fault", "not_a_mapping", "read_json", "too_deep"]
