"""How the limits of a value are said to a person, and what may have been meant by a refused one."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pydantic_core import PydanticCustomError

NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Allowed:
    """What a value may be, in words, and one example of it. Refusals print both."""

    text: str
    example: object = field(hash=False)
    closest: Callable[[object], object | None] = lambda _value: None
    """What may have been meant by a refused value, if that can be told."""
    code: str = "HF004"
    """The finding that a refused value is, as `holdfast explain` takes it."""


def refused() -> PydanticCustomError:
    """What a validator raises; the words are those of the field's Allowed."""
    return PydanticCustomError("refused", "not allowed here")


def closest_word(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` most resembles, if any does."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def number_in_words(value: object) -> int | None:
    """The number that a word or a text of digits says."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if re.fullmatch(r"\d{1,6}", word):
        return int(word)
    return NUMBER_WORDS.index(word) if word in NUMBER_WORDS else None
