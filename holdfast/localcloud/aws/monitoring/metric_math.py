"""
Metric math: time series made from others.

Pure. Source: CloudWatch user guide, "Math expressions with metrics" (using-metric-math), read 2026-11-23. Of its
functions those are here that alarms are made of; another one is refused by name, never guessed.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_NESTING = 50
LONGEST_EXPRESSION = 2048

Series = Mapping[int, float]
"""From the beginning of a period, in seconds since 1970, to its value; a period that is not in it has none."""
Value = float | dict[int, float] | list[dict[int, float]]


class MathError(ValueError):
    """An expression that CloudWatch refuses, or that is beyond this one."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """
    What an expression is computed from.

    Args:
        series: By the ids of the query.
        metrics: Ids of those that are metrics, for ``METRICS()``.
        times: All periods of the range, ascending.
        period_s: Length of one.
    """

    series: Mapping[str, Series]
    metrics: Sequence[str]
    times: Sequence[int]
    period_s: int


def compute(expression: str, given: Input) -> dict[int, float]:
    """
    The one time series that an expression is.

    Raises:
        MathError: with what is wrong with it.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise MathError(f"an expression has at most {LONGEST_EXPRESSION} characters, got {len(expression)}")
    found = _Reader(expression, given).read()
    if isinstance(found, float):
        raise MathError("the result of an expression is a time series, got a number")
    if isinstance(found, list):
        if len(found) != 1:
            raise MathError(f"an alarm watches one time series, got {len(found)}")
        return found[0]
    return found


_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<mark>&&|\|\||[-+*/^(),\[\]]|[<>=!]=|[<>]))"
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("OR", "||"),
    ("AND", "&&"),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
    ("^",),
)


def _divide(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def _power(left: float, right: float) -> float | None:
    try:
        found = left**right
    except (OverflowError, ZeroDivisionError):
        return None
    return found if isinstance(found, float) and math.isfinite(found) else None


_OPERATIONS: Mapping[str, Callable[[float, float], float | None]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "^": _power,
    "==": lambda left, right: float(left == right),
    "!=": lambda left, right: float(left != right),
    "<": lambda left, right: float(left < right),
    "<=": lambda left, right: float(left <= right),
    ">": lambda left, right: float(left > right),
    ">=": lambda left, right: float(left >= right),
    "AND": lambda left, right: float(left != 0 and right != 0),
    "&&": lambda left, right: float(left != 0 and right != 0),
    "OR": lambda left, right: float(left != 0 or right != 0),
    "||": lambda left, right: float(left != 0 or right != 0),
}


class _Reader:
    """Reads and computes at once, from left to right."""

    def __init__(self, expression: str, given: Input) -> None:
        self._given, self._depth = given, 0
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, expression.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise MathError(f"unexpected '{text[at : at + 20].strip()}' in the expression")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._tokens.append(("end", ""))
        self._at = 0

    def read(self) -> Value:
        found = self._level(0)
        if self._tokens[self._at][0] != "end":
            raise MathError(f"unexpected '{self._tokens[self._at][1]}' in the expression")
        return found

    def _level(self, level: int) -> Value:
        if level == len(_LEVELS):
            return self._signed()
        found = self._level(level + 1)
        while self._tokens[self._at][1] in _LEVELS[level] and self._tokens[self._at][0] in ("mark", "name"):
            operation = _OPERATIONS[self._next()]
            found = _combine(operation, found, self._level(level + 1))
        return found

    def _signed(self) -> Value:
        if self._take("-"):
            return _combine(_OPERATIONS["*"], -1.0, self._signed())
        return self._atom()

    def _atom(self) -> Value:
        self._depth += 1
        if self._depth > MOST_NESTING:
            raise MathError("too many parentheses in each other")
        kind, text = self._tokens[self._at]
        found: Value
        if kind == "number":
            self._at += 1
            found = float(text)
        elif kind == "name":
            self._at += 1
            found = self._function(text) if self._take("(") else self._series(text)
        elif self._take("("):
            found = self._level(0)
            self._expect(")")
        elif self._take("["):
            several = [self._level(0)]
            while self._take(","):
                several.append(self._level(0))
            self._expect("]")
            found = [dict(one) for value in several for one in _as_list(value)]
        else:
            raise MathError(f"unexpected '{text or 'end'}' in the expression")
        self._depth -= 1
        return found

    def _series(self, name: str) -> dict[int, float]:
        if name not in self._given.series:
            raise MathError(f"the expression names '{name}', and there is no query of this id")
        return dict(self._given.series[name])

    def _function(self, name: str) -> Value:
        if name == "METRICS":
            part = self._next().strip("\"'") if self._tokens[self._at][0] == "text" else ""
            self._expect(")")
            return [dict(self._given.series[one]) for one in self._given.metrics if part in one]
        if name == "PERIOD":
            self._level(0)
            self._expect(")")
            return float(self._given.period_s)
        if name == "FILL":
            return self._fill()
        arguments = [self._level(0)]
        while self._take(","):
            arguments.append(self._level(0))
        self._expect(")")
        if name == "IF" and len(arguments) in (2, 3):
            return self._choose(*arguments)
        if name == "TIME_SERIES" and len(arguments) == 1 and isinstance(arguments[0], float):
            return dict.fromkeys(self._given.times, arguments[0])
        if len(arguments) == 1 and name in _EACH:
            return _over(arguments[0], _EACH[name])
        if len(arguments) == 1 and name in _TOGETHER:
            return _together(arguments[0], _TOGETHER[name])
        raise MathError(f"the function {name} with {len(arguments)} argument(s) is not in the embedded CloudWatch")

    def _fill(self) -> Value:
        given = self._level(0)
        self._expect(",")
        repeat = self._take("REPEAT")
        filler: Value = 0.0 if repeat else self._level(0)
        self._expect(")")
        times = self._given.times

        def filled(series: Series) -> dict[int, float]:
            made: dict[int, float] = {}
            last: float | None = None
            for time in times:
                last = series.get(time, last)
                if time in series:
                    made[time] = series[time]
                elif repeat:
                    if last is not None:
                        made[time] = last
                elif isinstance(filler, float):
                    made[time] = filler
                elif isinstance(filler, dict) and time in filler:
                    made[time] = filler[time]
            return made

        return _over(given, filled)

    def _choose(self, condition: Value, then: Value, otherwise: Value | None = None) -> Value:
        if isinstance(condition, list) or isinstance(then, list) or isinstance(otherwise, list):
            raise MathError("IF takes numbers and time series, got an array")
        times = condition if isinstance(condition, dict) else dict.fromkeys(self._given.times, condition)
        made: dict[int, float] = {}
        for time, holds in times.items():
            chosen = then if holds else otherwise
            if chosen is not None:
                made[time] = chosen if isinstance(chosen, float) else chosen.get(time, 0.0)
        return made

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _take(self, text: str) -> bool:
        if self._tokens[self._at][1] == text and self._tokens[self._at][0] != "text":
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise MathError(f"expected {text}, got '{self._tokens[self._at][1] or 'end'}'")


def _as_list(value: Value) -> list[dict[int, float]]:
    if isinstance(value, float):
        raise MathError("an array is made of time series, got a number")
    return value if isinstance(value, list) else [value]


def _combine(operation: Callable[[float, float], float | None], left: Value, right: Value) -> Value:
    """Missing values count as 0 where the other side has one; what cannot be computed is no data point."""
    if isinstance(left, list) and isinstance(right, list):
        raise MathError("an operator takes at most one array")
    if isinstance(left, list):
        return [_single(operation, one, right) for one in left]  # type: ignore[arg-type,misc]
    if isinstance(right, list):
        return [_single(operation, left, one) for one in right]  # type: ignore[misc]
    return _single(operation, left, right)


def _single(
    operation: Callable[[float, float], float | None], left: float | dict[int, float], right: float | dict[int, float]
) -> float | dict[int, float]:
    if isinstance(left, float) and isinstance(right, float):
        found = operation(left, right)
        if found is None:
            raise MathError("a number is divided by 0")
        return found
    times = sorted({*(left if isinstance(left, dict) else ()), *(right if isinstance(right, dict) else ())})
    made: dict[int, float] = {}
    for time in times:
        result = operation(
            left if isinstance(left, float) else left.get(time, 0.0),
            right if isinstance(right, float) else right.get(time, 0.0),
        )
        if result is not None:
            made[time] = result
    return made


def _over(value: Value, change: Callable[[Series], dict[int, float]]) -> Value:
    if isinstance(value, float):
        raise MathError("the function takes time series, got a number")
    return [change(one) for one in value] if isinstance(value, list) else change(value)


def _together(value: Value, reduce: Callable[[Sequence[float]], float]) -> Value:
    """Of one time series a number; of several a time series."""
    if isinstance(value, float):
        raise MathError("the function takes time series, got a number")
    if isinstance(value, dict):
        return float(reduce(list(value.values()))) if value else 0.0
    times = sorted({time for one in value for time in one})
    return {time: float(reduce([one[time] for one in value if time in one])) for time in times}


def _each(change: Callable[[float], float]) -> Callable[[Series], dict[int, float]]:
    return lambda series: {time: float(change(value)) for time, value in series.items()}


def _difference(series: Series) -> dict[int, float]:
    times = sorted(series)
    return {late: series[late] - series[early] for early, late in pairwise(times)}


def _rate(series: Series) -> dict[int, float]:
    times = sorted(series)
    return {late: (series[late] - series[early]) / (late - early) for early, late in pairwise(times)}


_EACH: Mapping[str, Callable[[Series], dict[int, float]]] = {
    "ABS": _each(abs),
    "CEIL": _each(math.ceil),
    "FLOOR": _each(math.floor),
    "DIFF": _difference,
    "RATE": _rate,
}
_TOGETHER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "AVG": lambda values: math.fsum(values) / len(values),
    "DATAPOINT_COUNT": len,
    "MAX": max,
    "MIN": min,
    "SUM": math.fsum,
}
