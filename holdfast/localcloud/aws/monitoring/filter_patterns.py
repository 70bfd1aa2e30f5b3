"""
Filter patterns of CloudWatch Logs: which log events one matches, and the number that a metric filter takes from them.

Pure. Source: CloudWatch Logs user guide, "Filter pattern syntax for metric filters, subscription filters, filter log
events, and Live Tail" (FilterAndPatternSyntax, read 2026-11-23). Where the guide says nothing, it is written here:
a condition on a property that is absent does not hold, also with ``!=``.
"""

import functools
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_PATTERN = 1024
MOST_NESTING = 50

Test = Callable[[Any], bool]
"""Of one value: a JSON scalar, or a word of a log event."""


class FilterPatternError(ValueError):
    """A pattern that CloudWatch Logs refuses."""


@dataclass(frozen=True)
class LogEvent:
    """A message, which is read as JSON at most once, however many patterns and selectors are held against it."""

    message: str

    @functools.cached_property
    def document(self) -> Any:
        """What it says as JSON; None where it is no object and no list."""
        try:
            found = json.loads(self.message)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict | list) else None


@dataclass(frozen=True, kw_only=True)
class FilterPattern:
    """A pattern that was read."""

    matches: Callable[[LogEvent], bool]


@functools.lru_cache(maxsize=512)
def parse_pattern(pattern: str) -> FilterPattern:
    """
    Read a pattern.

    Raises:
        FilterPatternError: with what is wrong with it.
    """
    text = pattern.strip()
    if len(pattern) > LONGEST_PATTERN:
        raise FilterPatternError(f"a filter pattern has at most {LONGEST_PATTERN} characters, got {len(pattern)}")
    if text.startswith("{"):
        return FilterPattern(matches=_of_json(_Reader(text).json_pattern()))
    if text.startswith("["):
        return FilterPattern(matches=_of_message(_Reader(text).space_delimited_pattern()))
    return FilterPattern(matches=_of_message(_of_terms(text)))


def number_at(event: LogEvent, selector: str) -> float | None:
    """The first number at ``$.a.b`` of a log event that is JSON; None where there is none."""
    return next((number for value in _selected(event, selector) if (number := _number(value)) is not None), None)


def text_at(event: LogEvent, selector: str) -> str | None:
    """The scalar at ``$.a.b`` of a log event that is JSON, as a text; None where there is none."""
    value = next(iter(_selected(event, selector)), None)
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _selected(event: LogEvent, selector: str) -> Iterable[Any]:
    try:
        values = _Reader(selector).selector()
    except FilterPatternError:
        return ()
    return () if event.document is None else values(event.document)


def _of_json(test: Test) -> Callable[[LogEvent], bool]:
    return lambda event: event.document is not None and test(event.document)


def _of_message(test: Callable[[str], bool]) -> Callable[[LogEvent], bool]:
    return lambda event: test(event.message)


_TERM = re.compile(r'(?P<sign>[-?]?)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|%(?P<regex>[^%]*)%|(?P<word>[^\s"%]+))\s*')


def _of_terms(text: str) -> Callable[[str], bool]:
    """Words that have to be there, and after ``-`` such as must not; with nothing else, any of those after ``?``."""
    wanted: list[Callable[[str], bool]] = []
    unwanted: list[Callable[[str], bool]] = []
    optional: list[Callable[[str], bool]] = []
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise FilterPatternError(f"Invalid character(s) in term '{text[at : at + 20]}'")
        if match["regex"] is not None:
            found = _regex(match["regex"])
        else:
            word = re.sub(r"\\(.)", r"\1", match["quoted"]) if match["quoted"] is not None else match["word"]
            found = functools.partial(_contains, word.strip() if match["quoted"] is not None else word)
        {"": wanted, "-": unwanted, "?": optional}[match["sign"]].append(found)
        at = match.end()

    def matches(message: str) -> bool:
        if optional and not wanted and not unwanted:
            return any(one(message) for one in optional)
        return all(one(message) for one in wanted) and not any(one(message) for one in unwanted)

    return matches


def _contains(word: str, message: str) -> bool:
    return word in message


def _regex(pattern: str) -> Callable[[str], bool]:
    if "(" in pattern.replace("\\(", "") or ")" in pattern.replace("\\)", ""):
        raise FilterPatternError(f"a regular expression has no parentheses, got %{pattern}%")
    try:
        with warnings.catch_warnings():
            # Python warns of a nested set, "[[" and "[a--b]", which may mean something else in a later version of it.
            warnings.simplefilter("error", FutureWarning)
            compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise FilterPatternError(f"%{pattern}% is no regular expression: {error}") from None
    return lambda text: compiled.search(text) is not None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return None


class _Reader:
    """Reads one pattern, from left to right."""

    _OPERATOR = re.compile(r"!=|>=|<=|=|>|<")
    _WORD = re.compile(r"[^\s(){}\[\],&|=<>!\"%]+")
    _NAME = re.compile(r"[A-Za-z0-9_-]+")

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def json_pattern(self) -> Test:
        self._expect("{")
        test = self._any_of()
        self._expect("}")
        self._end()
        return test

    def space_delimited_pattern(self) -> Callable[[str], bool]:
        self._expect("[")
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        self._expect("]")
        self._end()

        def matches(message: str) -> bool:
            return _fits(fields, _words(message))

        return matches

    def selector(self) -> Callable[[Any], Iterator[Any]]:
        """From a document to what the selector points to: nothing, one value, or several with a wildcard."""
        self._expect("$")
        steps: list[str | int | None] = []
        while True:
            if self._take("."):
                if self._take("["):
                    steps.append(self._quoted("'"))
                    self._expect("]")
                elif self._take("*"):
                    steps.append(None)
                else:
                    steps.append(self._match(self._NAME, "the name of a property"))
            elif self._text[self._at : self._at + 1] == "[":
                self._expect("[")
                if self._take("*"):
                    steps.append(None)
                else:
                    steps.append(int(self._match(re.compile(r"\d{1,9}"), "the number of an element")))
                self._expect("]")
            else:
                break
        if not steps or steps.count(None) > 1:
            raise FilterPatternError("a property selector begins with $. and has at most one wildcard")
        return functools.partial(_values, tuple(steps))

    def _any_of(self) -> Test:
        tests = [self._all_of()]
        while self._take("||"):
            tests.append(self._all_of())
        return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._one()]
        while self._take("&&"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)

    def _one(self) -> Test:
        if self._take("("):
            self._depth += 1
            if self._depth > MOST_NESTING:
                raise FilterPatternError("too many parentheses in each other")
            test = self._any_of()
            self._expect(")")
            self._depth -= 1
            return test
        self._space()
        values = self.selector()
        if self._take_word("IS"):
            wanted = {"NULL": None, "TRUE": True, "FALSE": False}
            name = self._match(re.compile("NULL|TRUE|FALSE"), "NULL, TRUE or FALSE")
            return lambda document: any(value is wanted[name] for value in values(document))
        if self._take_word("NOT"):
            if not self._take_word("EXISTS"):
                raise FilterPatternError("NOT is followed by EXISTS")
            return lambda document: next(values(document), self) is self
        test = self._comparison()
        return lambda document: any(
            test(value) for value in values(document) if not isinstance(value, dict | list) and value is not None
        )

    def _field(self) -> tuple[bool, Test]:
        """Whether it stands for any number of words, and what a word has to be."""
        if self._take("..."):
            return True, lambda _: True
        name = self._match(self._NAME, "the name of a field")
        return False, self._field_any_of(name)

    def _field_any_of(self, name: str) -> Test:
        alternatives: list[list[Test]] = [[]]
        while True:
            self._space()
            if self._OPERATOR.match(self._text, self._at):
                alternatives[-1].append(self._comparison())
            if self._take("||"):
                alternatives.append([])
            elif not self._take("&&"):
                return lambda word: any(all(test(word) for test in tests) for tests in alternatives)
            if self._match(self._NAME, "the name of a field") != name:
                raise FilterPatternError(f"conditions on the field '{name}' name another one")

    def _comparison(self) -> Test:
        operator = self._match(self._OPERATOR, "an operator")
        self._space()
        rest = self._text[self._at :]
        if rest.startswith("%"):
            end = self._text.find("%", self._at + 1)
            if end < 0:
                raise FilterPatternError("a regular expression ends with %")
            found = _regex(self._text[self._at + 1 : end])
            self._at = end + 1
            return _negated(operator, lambda value: isinstance(value, str) and found(value))
        if rest.startswith('"'):
            return _negated(operator, _like(self._quoted('"')))
        word = self._match(self._WORD, "a value")
        number = _number(word)
        if number is None:
            return _negated(operator, _like(word))
        return _compared(operator, number)

    def _quoted(self, mark: str) -> str:
        self._expect(mark)
        found = re.compile(rf"(?:[^{mark}\\]|\\.)*").match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        self._expect(mark)
        return re.sub(r"\\(.)", r"\1", found.group())

    def _space(self) -> None:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1

    def _take(self, mark: str) -> bool:
        start = self._at
        self._space()
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        self._at = start
        return False

    def _take_word(self, word: str) -> bool:
        start = self._at
        if self._take(word) and not self._text[self._at : self._at + 1].isalnum():
            return True
        self._at = start
        return False

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

    def _end(self) -> None:
        self._space()
        if self._at < len(self._text):
            raise FilterPatternError(f"nothing may follow, got '{self._text[self._at : self._at + 20]}'")


def _values(steps: Sequence[str | int | None], document: Any) -> Iterator[Any]:
    if not steps:
        yield document
        return
    for below in _below(steps[0], document):
        yield from _values(steps[1:], below)


def _below(step: str | int | None, document: Any) -> Iterable[Any]:
    """The element or property of that number or name, or all of them."""
    if isinstance(document, dict):
        return document.values() if step is None else [document[step]] if step in document else []
    if isinstance(document, list):
        return document if step is None else document[step : step + 1] if isinstance(step, int) else []
    return []


def _like(text: str) -> Test:
    """Equal to a text in which ``*`` stands for anything."""
    compiled = re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)

    def test(value: Any) -> bool:
        if isinstance(value, bool):
            return False
        return compiled.fullmatch(value if isinstance(value, str) else json.dumps(value)) is not None

    return test


def _negated(operator: str, test: Test) -> Test:
    if operator == "=":
        return test
    if operator == "!=":
        return lambda value: not test(value)
    raise FilterPatternError(f"{operator} compares numbers")


def _compared(operator: str, number: float) -> Test:
    compare: dict[str, Callable[[float], bool]] = {
        "=": lambda value: value == number,
        "!=": lambda value: value != number,
        ">": lambda value: value > number,
        ">=": lambda value: value >= number,
        "<": lambda value: value < number,
        "<=": lambda value: value <= number,
    }
    chosen = compare[operator]

    def test(value: Any) -> bool:
        found = _number(value)
        return operator == "!=" if found is None else chosen(found)

    return test


_SPLIT = re.compile(r'\[[^\]]*\]|"(?:[^"\\]|\\.)*"|\S+')


def _words(message: str) -> list[str]:
    """Words of an event; what is in brackets or in quotation marks is one."""
    return [word[1:-1] if word[0] in '["' and len(word) > 1 else word for word in _SPLIT.findall(message)]


def _fits(fields: Sequence[tuple[bool, Test]], words: Sequence[str]) -> bool:
    """The last field takes all words that are left; an ellipsis takes as many as fit."""
    if not fields:
        return not words
    (several, test), rest = fields[0], fields[1:]
    if several:
        return any(_fits(rest, words[count:]) for count in range(len(words) + 1))
    if not words:
        return False
    if not rest:
        return test(" ".join(words))
    return test(words[0]) and _fits(rest, words[1:])
