"""Settings that a stack cannot be made without, although the model of the file has them optional."""

from typing import TypeVar

T = TypeVar("T")


def required(value: T | None, *, setting: str) -> T:
    """
    Return a setting that is there.

    Raises:
        ValueError: it is missing, and so the file was not checked before.
    """
    if value is None:
        raise ValueError(f"got no {setting}; allowed: a value; set it, and run holdfast check on the file first")
    return value
