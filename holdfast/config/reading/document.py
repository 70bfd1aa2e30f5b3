"""
YAML as plain data with line numbers.

Stricter than YAML: one document, unique text keys, no merge keys, aliases or custom tags.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from holdfast.config.refusals import EnvironmentFileError, Problem, dotted, plain

Location = tuple[str | int, ...]

_PLAIN = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d*)?([eE][-+]?\d+)?|[-+]?\.\d+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
"""Numbers that say what they look like."""
OPEN_QUESTION = re.compile(r"^\s*#\s(?:\S+: )?DECIDE:\s*(.*)$")
AS_IT_WAS = re.compile(r"^# As it was: (.+)$")
CONTINUED = re.compile(r"^\s*#\s{3,}(\S.*)$")


@dataclass(frozen=True, kw_only=True)
class Document:
    file: str
    data: dict[str, Any]
    lines: dict[Location, int] = field(default_factory=dict)
    written: dict[Location, str] = field(default_factory=dict)
    """Numbers, truth values and nulls as they stand in the file, which is not always how Python shows them."""
    problems: list[Problem] = field(default_factory=list)
    """What the reading already found: duplicate keys and the like."""
    odd_numbers: list[Problem] = field(default_factory=list)
    """Numbers that say another one than they look like, wherever nothing else is wrong with them."""
    open_questions: dict[int, str] = field(default_factory=dict)
    """Comments that an import left for a person to decide, by their line."""
    as_it_was: dict[int, str] = field(default_factory=dict)
    """What an import wrote about the cluster that the file came from, by its line."""

    def line(self, location: Location) -> int:
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)

    def problem(self, location: Location, *, given: str, allowed: str, fix: str, code: str = "HF004") -> Problem:
        line, path = self.line(location), dotted(location)
        return Problem(file=self.file, line=line, path=path, given=given, allowed=allowed, fix=fix, code=code)


def read(path: Path) -> Document:
    """Read a file. Raises: EnvironmentFileError: unreadable, or not YAML."""
    name = _display_name(path)
    text = _text(path, name)
    loader = _loader(text, name)
    try:
        root = loader.get_single_node()
        if root is None:
            raise _unusable(name, 1, "an empty file", "an environment", "copy environments/local.yaml and change it")
        if not isinstance(root, yaml.MappingNode):
            raise _unusable(
                name, root.start_mark.line + 1, "no mapping", "settings as name: value", "begin with name: local"
            )
        document = Document(
            file=name, data={}, open_questions=_comments(OPEN_QUESTION, text), as_it_was=_comments(AS_IT_WAS, text)
        )
        _Builder(document, loader).mapping(root, (), into=document.data)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise _unusable(
            name, mark.line + 1 if mark else 1, what, "YAML", "correct the syntax in or above this line"
        ) from None
    except RecursionError:
        raise _unusable(name, 1, "values nested too deeply", "an environment", "remove the nesting") from None
    finally:
        loader.dispose()
    return document


def _comments(begin: re.Pattern[str], text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    last = 0
    for number, line in enumerate(text.splitlines(), 1) if "#" in text else ():
        if begins := begin.match(line):
            last = number
            found[last] = begins[1]
        elif last and (goes_on := CONTINUED.match(line)):
            found[last] += f" {goes_on[1]}"
        else:
            last = 0
    return found


def _loader(text: str, name: str) -> yaml.SafeLoader:
    try:
        return yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        line, given = text[: error.position].count("\n") + 1, f"the character {error.character:#04x}"
        raise _unusable(name, line, given, "YAML of printable characters", "remove it") from None


def _text(path: Path, name: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _unusable(name, line, "bytes that are no UTF-8", "UTF-8 text", "save the file as UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _unusable(name, 0, reason, "a readable YAML file", "check the path") from None


class _Builder:
    def __init__(self, document: Document, loader: yaml.SafeLoader) -> None:
        self._document = document
        self._loader = loader
        self._seen: set[int] = set()

    def mapping(self, node: yaml.MappingNode, location: Location, *, into: dict[str, Any]) -> dict[str, Any]:
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            line = key_node.start_mark.line + 1
            where = (*location, "(key)" if key is None else key)
            if key is None or key in into:
                self._refuse_key(where, line, again=key is not None)
                continue
            self._document.lines[where] = line
            into[key] = self._value(value_node, where)
        return into

    def _refuse_key(self, where: Location, line: int, *, again: bool) -> None:
        first = self._document.lines.get(where, line)
        given = f"the setting a second time, after line {first}" if again else "a name that is no text"
        problem = Problem(
            file=self._document.file,
            line=line,
            path=dotted(where),
            given=given,
            allowed="each setting once, named by text",
            fix="remove one of the two" if again else "write the name as plain text",
            code="HF005",
        )
        self._document.problems.append(problem)

    def _value(self, node: yaml.Node, location: Location) -> Any:
        if id(node) in self._seen:
            fix = "write the value out"
            self._document.problems.append(
                self._document.problem(
                    location, given="an alias (*name)", allowed="plain values", fix=fix, code="HF005"
                )
            )
            return None
        self._seen.add(id(node))
        self._document.lines.setdefault(location, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, location, into={})
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*location, index)) for index, item in enumerate(node.value)]
        try:
            value = self._loader.construct_object(node)
        except (ValueError, ArithmeticError, LookupError, AttributeError):
            # What looks like a date, a number or a truth value and is none: PyYAML has no error of its own for it.
            value = node.value
        if not isinstance(value, str):
            self._document.written[location] = plain(node.value) or "null"
            if isinstance(value, int | float) and not isinstance(value, bool) and not _PLAIN.fullmatch(node.value):
                self._refuse_number(location, node.value, value)
        return value

    def _refuse_number(self, location: Location, written: str, value: float) -> None:
        self._document.odd_numbers.append(
            self._document.problem(
                location,
                given=f"{written}, which YAML reads as {value}",
                allowed="numbers of decimal digits; text in quotes",
                fix=f'write {value}, or "{written}" where text is meant',
            )
        )


def _unusable(name: str, line: int, given: str, allowed: str, fix: str) -> EnvironmentFileError:
    problem = Problem(file=name, line=line, path="", given=given, allowed=allowed, fix=fix, code="HF001")
    return EnvironmentFileError([problem])


def _display_name(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
