"""Numbers as the page gets them: milliseconds, and few digits."""

import math

_DIGITS = 6


def milliseconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else round(time_ns / 1e6, 1)


def rounded(value: float | None) -> float | None:
    """Return a number of a few digits; None for one that JSON lacks."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}") if abs(value) < 10**_DIGITS else round(value)
