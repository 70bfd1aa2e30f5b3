"""
The rules of composite alarms: which alarms one names, and whether it holds in their states.

Pure. Source: CloudWatch API reference, PutCompositeAlarm (read 2026-11-23): functions, operators, limits, and that
evaluation stops where it meets a cycle. That NOT binds before AND, and AND before OR, is assumed, and so is that an
alarm that is not there is in no state.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from holdfast.localcloud.aws.monitoring.alarm_states import ALARM, INSUFFICIENT_DATA, OK

MOST_CHARACTERS = 10_240
MOST_CHILDREN = 100
MOST_ELEMENTS = 500
MOST_NESTING = 100
"""Assumed; the reference limits the elements only."""
States = Callable[[str], str | None]
"""From a name or an ARN, as the rule has it, to the state of that alarm; None where there is none."""
Test = Callable[[States], bool]

_TOKEN = re.compile(r'\s*(?:(?P<mark>[()])|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[^\s()"]+))')
_FUNCTIONS = (ALARM, OK, INSUFFICIENT_DATA)


class CompositeRuleError(ValueError):
    """A rule that CloudWatch refuses."""


@dataclass(frozen=True, kw_only=True)
class CompositeRule:
    """
    A rule that was read.

    Args:
        children: Names or ARNs, as the rule has them.
        holds: Whether it does; the composite alarm is then in ALARM, and else in OK.
    """

    children: tuple[str, ...]
    holds: Test


def parse_rule(text: str) -> CompositeRule:
    """Raises CompositeRuleError with what is wrong with it."""
    if len(text) > MOST_CHARACTERS:
        raise CompositeRuleError(f"an alarm rule has at most {MOST_CHARACTERS} characters, got {len(text)}")
    reader = _Reader(_tokens(text))
    holds = reader.any_of()
    reader.end()
    children = tuple(dict.fromkeys(reader.children))
    if len(children) > MOST_CHILDREN or reader.elements > MOST_ELEMENTS:
        raise CompositeRuleError(f"an alarm rule names at most {MOST_CHILDREN} alarms and has {MOST_ELEMENTS} elements")
    return CompositeRule(children=children, holds=holds)


def in_order(children: Mapping[str, Iterable[str]]) -> list[str]:
    """
    Names of composite alarms, each after those that it names; without those that are in a cycle, or wait for one.

    Args:
        children: Of each composite alarm, by its name.
    """
    found: list[str] = []
    left = dict(children)
    while ready := [name for name, named in left.items() if not any(child in left for child in named)]:
        found += ready
        for name in ready:
            del left[name]
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of each part."""
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise CompositeRuleError(f"an alarm rule cannot go on with '{text[at : at + 20]}'")
        kind = match.lastgroup or ""
        found.append((kind, re.sub(r"\\(.)", r"\1", match[kind]) if kind == "quoted" else match[kind]))
        at = match.end()
    return found


class _Reader:
    """Reads one rule, from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self.children: list[str] = []
        self.elements = 0

    def any_of(self) -> Test:
        tests = [self._all_of()]
        while self._take("OR"):
            tests.append(self._all_of())
        return lambda states: any(test(states) for test in tests)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise CompositeRuleError(f"nothing may follow, got '{self._tokens[self._at][1]}'")

    def _all_of(self) -> Test:
        tests = [self._one()]
        while self._take("AND"):
            tests.append(self._one())
        return lambda states: all(test(states) for test in tests)

    def _one(self) -> Test:
        negations = 0
        while self._take("NOT"):
            negations += 1
        test = self._plain()
        return test if negations % 2 == 0 else lambda states: not test(states)

    def _plain(self) -> Test:
        self.elements += 1
        if self.elements > MOST_ELEMENTS:
            raise CompositeRuleError(f"an alarm rule has at most {MOST_ELEMENTS} elements")
        if self._take("("):
            self._depth += 1
            if self._depth > MOST_NESTING:
                raise CompositeRuleError("too many parentheses in each other")
            test = self.any_of()
            self._expect(")")
            self._depth -= 1
            return test
        if self._take("TRUE"):
            return lambda _: True
        if self._take("FALSE"):
            return lambda _: False
        for state in _FUNCTIONS:
            if self._take(state):
                self._expect("(")
                child = self._name()
                self._expect(")")
                return lambda states: states(child) == state
        raise CompositeRuleError(f"expected a function, TRUE, FALSE, NOT or ( before '{self._shown()}'")

    def _name(self) -> str:
        """An alarm's; without quotation marks it may have spaces, but no parentheses."""
        words: list[str] = []
        while self._at < len(self._tokens) and self._tokens[self._at][0] != "mark":
            words.append(self._tokens[self._at][1])
            self._at += 1
        if not words:
            raise CompositeRuleError(f"expected the name of an alarm before '{self._shown()}'")
        self.children.append(" ".join(words))
        return self.children[-1]

    def _take(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] in (("word", word), ("mark", word)):
            self._at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise CompositeRuleError(f"expected {mark} before '{self._shown()}'")

    def _shown(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""
