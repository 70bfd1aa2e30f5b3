"""
Filter patterns of CloudWatch Logs: terms, and conditions on the properties of JSON log events.

Pure. Source: CloudWatch Logs user guide, "Filter pattern syntax for metric filters, subscription filters, filter log
events, and Live Tail" (FilterAndPatternSyntax, read 2026-11-23). Regular expressions, space-delimited patterns,
optional and excluded terms, IS and NOT EXISTS, array elements and wildcards in selectors are rejected.
The guide leaves open, and this module assumes: a condition on an absent property does not hold, also with ``!=``.
"""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LONGEST_PATTERN = 1024
MOST_NESTING = 50

Test = Callable[[Any], bool]


class FilterPatternError(ValueError): ...


@dataclass(frozen=True)
class LogEvent:
    """A message, parsed as JSON at most once."""

    message: str

    @functools.cached_property
    def document(self) -> dict[str, Any] | None:
        """The message as a JSON object; None if it is none."""
        try:
            found = json.loads(self.message)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


@functools.lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> Callable[[LogEvent], bool]:
    """Return a predicate. Raise FilterPatternError naming what is not supported."""
    text = pattern.strip()
    if len(pattern) > LONGEST_PATTERN:
        raise FilterPatternError(f"got {len(pattern)} characters; allowed: {LONGEST_PATTERN}")
    if text.startswith("{"):
        test = _Reader(text).json_pattern()
        return lambda event: event.document is not None and test(event.document)
    terms = _terms(text)
    return lambda event: all(term in event.message for term in terms)


def number_at(event: LogEvent, selector: str) -> float | None:
    """Return the number at ``$.a.b`` of a JSON log event, or None."""
    return to_number(_selected(event, selector))


def text_at(event: LogEvent, selector: str) -> str | None:
    """Return the scalar at ``$.a.b`` of a JSON log event as text, or None."""
    value = _selected(event, selector)
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def parse_selector(selector: str) -> tuple[str, ...]:
    """Return the names of ``$.a.b``. Raise FilterPatternError naming what is not supported."""
    reader = _Reader(selector)
    names = reader.selector()
    reader.end("selector")
    return names


def _selected(event: LogEvent, selector: str) -> Any:
    try:
        names = parse_selector(selector)
    except FilterPatternError:
        return None
    return _value(names, event.document)


def _value(names: tuple[str, ...], document: Any) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


_TERM = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"%?\[-][^\s"%]*))(?:\s+|$)')


def _terms(text: str) -> list[str]:
    terms, at = [], 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise FilterPatternError(f"unsupported term '{text[at : at + 20]}'")
        quoted = match["quoted"]
        terms.append(match["word"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted).strip())
        at = match.end()
    return terms


def to_number(value: Any) -> float | None:
    """Return a number, or text that is one, as a float; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


class _Reader:
    _OPERATOR = re.compile(r"!=|>=|<=|=|>|<")
    _WORD = re.compile(r"[^\s(){}\[\],&|=<>!\"%]+")
    _NAME = re.compile(r"[A-Za-z0-9_-]+")
    _QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def json_pattern(self) -> Test:
        self._expect("{")
        test = self._any_of()
        self._expect("}")
        self.end("pattern")
        return test

    def end(self, what: str) -> None:
        if self._at < len(self._text):
            raise FilterPatternError(f"unexpected '{self._text[self._at : self._at + 20]}' after the {what}")

    def selector(self) -> tuple[str, ...]:
        self._expect("$")
        names = []
        while self._take("."):
            names.append(self._match(self._NAME, "the name of a property"))
        if not names:
            raise FilterPatternError("a property selector starts with $.")
        return tuple(names)

    def _any_of(self) -> Test:
        tests = [self._all_of()]
        while self._take("||"):
            tests.append(self._all_of())
        return lambda document: any(test(document) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._condition()]
        while self._take("&&"):
            tests.append(self._condition())
        return lambda document: all(test(document) for test in tests)

    def _condition(self) -> Test:
        if self._take("("):
            self._depth += 1
            if self._depth > MOST_NESTING:
                raise FilterPatternError(f"more than {MOST_NESTING} nested parentheses")
            test = self._any_of()
            self._expect(")")
            self._depth -= 1
            return test
        names, compare = self.selector(), self._comparison()

        def holds(document: Any) -> bool:
            value = _value(names, document)
            return value is not None and not isinstance(value, dict | list) and compare(value)

        return holds

    def _comparison(self) -> Test:
        operator = self._match(self._OPERATOR, "an operator")
        self._space()
        if quoted := self._QUOTED.match(self._text, self._at):
            self._at = quoted.end()
            return _like(operator, re.sub(r"\\(.)", r"\1", quoted[1]))
        word = self._match(self._WORD, "a value")
        number = to_number(word)
        return _like(operator, word) if number is None else _compared(operator, number)

    def _space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _take(self, mark: str) -> bool:
        self._space()
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise FilterPatternError(f"expected {mark} before '{self._text[self._at : self._at + 20]}'")

    def _match(self, pattern: "re.Pattern[str]", what: str) -> str:
        self._space()
        found = pattern.match(self._text, self._at)
        if found is None:
            raise FilterPatternError(f"expected {what} before '{self._text[self._at : self._at + 20]}'")
        self._at = found.end()
        return found.group()


def _like(operator: str, text: str) -> Test:
    if operator not in ("=", "!="):
        raise FilterPatternError(f"{operator} compares numbers, got '{text}'")
    compiled = re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)

    def test(value: Any) -> bool:
        text = value if isinstance(value, str) else json.dumps(value)
        equal = not isinstance(value, bool) and compiled.fullmatch(text) is not None
        return equal is (operator == "=")

    return test


def _compared(operator: str, number: float) -> Test:
    compare: dict[str, Callable[[float], bool]] = {
        "=": lambda value: value == number,
        "!=": lambda value: value != number,
        ">": lambda value: value > number,
        ">=": lambda value: value >= number,
        "<": lambda value: value < number,
        "<=": lambda value: value <= number,
    }

    def test(value: Any) -> bool:
        found = to_number(value)
        return operator == "!=" if found is None else compare[operator](found)

    return test
