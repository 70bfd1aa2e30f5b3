"""
Template data with line numbers.

Reading never raises for bad input: a fault in a text is a ``Fault``, an unusable template is ``Unreadable``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 200
"""Levels. Nothing that a person or the CDK writes comes near; what does is made to break readers."""


class LinedMapping(dict[str, Any]):
    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class LinedList(list[Any]):
    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Text that CloudFormation rejects, or misreads."""

    code: str
    line: int
    path: str = ""
    given: str
    allowed: str
    fix: str


class Unreadable(ValueError):  # noqa: N818 - said of a text, not of a program
    def __init__(self, *, line: int, given: str, allowed: str, fix: str) -> None:
        super().__init__(f"got {given} in line {line}; allowed: {allowed}; {fix}")
        self.file = ""
        """Set by the reader."""
        self.fault = Fault(code="HF001", line=line, given=given, allowed=allowed, fix=fix)


def twice(path: Iterable[str | int], line: int, first: int) -> Fault:
    """Fault of a repeated key; CloudFormation does not define which one counts."""
    return Fault(
        code="HF005",
        line=line,
        path=dotted(path),
        given=f"the key a second time, after line {first}",
        allowed="each key once",
        fix="remove one of the two",
    )


def dotted(path: Iterable[str | int]) -> str:
    return ".".join(map(str, path))


def line_of(body: object, path: str) -> int | None:
    """
    Line of a path, or of the nearest one around it; None without lines. Keys may hold dots: the longest match is used.
    """
    line = getattr(body, "line", None) or None
    rest = path
    while rest:
        if isinstance(body, LinedMapping):
            key = _next_key(body, rest)
            if key is None:
                return line
            line, body, rest = body.lines.get(key, line), body[key], rest[len(key) + 1 :]
        elif isinstance(body, LinedList):
            index, _, rest = rest.partition(".")
            if not index.isdigit() or int(index) >= len(body):
                return line
            line, body = body.lines[int(index)], body[int(index)]
        else:
            return line
    return line


def _next_key(body: Mapping[str, Any], rest: str) -> str | None:
    first = rest.partition(".")[0]
    if first in body:
        return first
    fitting = [key for key in body if rest == key or rest.startswith(f"{key}.")]
    return max(fitting, key=len, default=None)
