import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST_LINE = 4096


class Match(NamedTuple):
    line: int
    """Index of the line."""
    is_stop: bool
    """Of the stop pattern."""
    value: float | None = None
    """First group of the pattern, where it is a number."""


def matched(pattern: str, stop_pattern: str, lines: Sequence[str]) -> list[Match]:
    """Return the matches in order. The patterns are the user's: a match may take exponential time."""
    log, stop = re.compile(pattern), re.compile(stop_pattern) if stop_pattern else None
    found = []
    for index, line in enumerate(lines):
        text = line[:LONGEST_LINE]
        if match := log.match(text):
            found.append(Match(index, is_stop=False, value=_number(match[1]) if log.groups else None))
        if stop is not None and stop.match(text):
            found.append(Match(index, is_stop=True))
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
