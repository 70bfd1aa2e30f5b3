"""
Templates as data that remembers its lines: mappings and lists that know where each entry begins.

Reading never raises for what somebody wrote: what is wrong with a text is a ``Fault``, and what cannot be used as a
template at all is ``Unreadable``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 200
"""Levels. Nothing that a person or the CDK writes comes near; what does is made to break readers."""


class LinedMapping(dict[str, Any]):
    """A mapping that knows the line of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class LinedList(list[Any]):
    """A list that knows the line of each entry."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something in a text that CloudFormation does not take, or takes for something else."""

    code: str
    line: int
    path: str = ""
    given: str
    allowed: str
    fix: str


class Unreadable(ValueError):  # noqa: N818 - said of a text, not of a program
    """A text is no template that anything can be said about."""

    def __init__(self, *, line: int, given: str, allowed: str, fix: str) -> None:
        super().__init__(f"got {given} in line {line}; allowed: {allowed}; {fix}")
        self.file = ""
        """Set by whoever knows it."""
        self.fault = Fault(code="HF001", line=line, given=given, allowed=allowed, fix=fix)


def twice(path: Iterable[str | int], line: int, first: int) -> Fault:
    """That a key stands a second time; CloudFormation leaves open which of the two counts."""
    return Fault(
        code="HF005",
        line=line,
        path=dotted(path),
        given=f"the key a second time, after line {first}",
        allowed="each key once",
        fix="remove one of the two",
    )


def dotted(path: Iterable[str | int]) -> str:
    """A place, as findings write it."""
    return ".".join(map(str, path))


def line_of(body: object, path: str) -> int | None:
    """
    The line of a place, or of the nearest one around it; None where the data has no lines.

    Keys may hold dots: of the keys that a path may go on with, the longest one is taken.
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
