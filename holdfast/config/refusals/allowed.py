"""Allowed values in words."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic_core import PydanticCustomError

NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Allowed:
    text: str
    example: object = field(hash=False)
    closest: Callable[[object], object | None] = lambda _value: None
    """Probable meaning of a refused value, if there is one."""
    code: str = "HF004"
    """The finding that a refused value is, as `holdfast explain` takes it."""


def refused() -> PydanticCustomError:
    return PydanticCustomError("refused", "not allowed here")


def in_letters_of(pattern: str, *, longest: int = 63) -> Callable[[object], str | None]:
    """Return a ``closest`` that writes a name with hyphens, or also in lower case, if ``pattern`` then allows it."""

    def closest(value: object) -> str | None:
        name = re.sub(r"[_. ]+", "-", str(value))
        return next((each for each in (name, name.lower()) if re.match(pattern, each) and len(each) <= longest), None)

    return closest


def number_in_words(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if re.fullmatch(r"\d{1,6}", word):
        return int(word)
    return NUMBER_WORDS.index(word) if word in NUMBER_WORDS else None
