"""Texts of a log that anyone on a node can write, and unknown numbers, made safe to show."""

from datetime import UTC, datetime

from holdfast_common import plain

UNKNOWN = "-"


def seconds(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if value < 100:
        return f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.0f} min" if value >= 600 else f"{value:.0f} s"
    return f"{value / 3600:.1f} h" if value < 172_800 else f"{value / 86_400:.1f} d"


def number(value: float | None, *, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def dollars(value: float | None) -> str:
    return UNKNOWN if value is None else f"${value:,.2f}"


def count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def text_or(value: str | None) -> str:
    return UNKNOWN if value is None else plain(value)


def moment(time_ns: int) -> str:
    """UTC, to the second."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
