"""
Metric math: sums and differences of metrics, numbers and ``FILL(metric, number)``, as the alarms of Holdfast use them.

Pure. Source: CloudWatch user guide, "Math expressions with metrics" (using-metric-math), read 2026-11-23. Anything else
of the language is rejected by name, never guessed.
"""

import re
from collections.abc import Mapping, Sequence

Series = Mapping[int, float]
"""From the start of a period, in seconds since 1970, to its value; a missing period has no entry."""

_TERM = re.compile(
    r"\s*(?P<sign>[-+]?)\s*(?:FILL\(\s*(?P<filled>[a-z]\w*)\s*,\s*(?P<filler>-?\d+(?:\.\d+)?)\s*\)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<name>[a-z]\w*))\s*(?=[-+]|$)",
    re.ASCII,
)


class MathError(ValueError):
    """An expression that the embedded CloudWatch does not evaluate."""


def _terms(expression: str) -> list[re.Match[str]]:
    terms: list[re.Match[str]] = []
    at = 0
    while match := _TERM.match(expression, at):
        if terms and not match["sign"]:
            break
        terms.append(match)
        at = match.end()
    if not terms or at < len(expression):
        raise MathError(f"metric math '{expression}'")
    if all(term["number"] for term in terms):
        raise MathError(f"metric math '{expression}' without a metric")
    return terms


def compute(expression: str, *, series: Mapping[str, Series], times: Sequence[int]) -> dict[int, float]:
    """
    Return the time series of an expression. A missing value counts as 0 where another term has one.

    Args:
        series: By the ids of the query.
        times: Starts of all periods of the range, ascending, in seconds since 1970.

    Raises:
        MathError: The expression is beyond this subset or names an unknown id.
    """
    result: dict[int, float] = {}
    constant = 0.0
    for term in _terms(expression):
        factor = -1.0 if term["sign"] == "-" else 1.0
        if term["number"]:
            constant += factor * float(term["number"])
            continue
        name = term["filled"] or term["name"]
        if name not in series:
            raise MathError(f"the expression names '{name}', but no query has this id")
        values = series[name]
        if term["filled"]:
            values = {time: values.get(time, float(term["filler"])) for time in times}
        for time, value in values.items():
            result[time] = result.get(time, 0.0) + factor * value
    return {time: value + constant for time, value in result.items()}
