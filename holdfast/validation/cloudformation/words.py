"""Nearest of several words."""

import difflib
from collections.abc import Iterable


def closest(word: str, words: Iterable[str]) -> str | None:
    by_lower = {each.lower(): each for each in words}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one, start=1):
        above, row[0] = row[0], index
        for place, each in enumerate(other, start=1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (letter != each))
    return row[-1]
