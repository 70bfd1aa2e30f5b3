"""Shares, money and times of a plan as text."""


def percent(share: float) -> str:
    return f"{share:.2%}"


def dollars(usd: float | None) -> str:
    if usd is None:
        return "-"
    return f"-${-usd:,.0f}" if usd <= -0.5 else f"${max(0.0, usd):,.0f}"


def days(duration_h: float | None) -> str:
    """Days, or hours if short."""
    if duration_h is None:
        return "never"
    return f"{duration_h / 24:,.1f} days" if abs(duration_h) >= 48 else f"{duration_h:,.1f} h"


def short_dollars(usd: float) -> str:
    """Dollars in millions and billions, to fit 80 columns."""
    sign = "-" if usd < 0 else ""
    for size, letter in ((1e9, "B"), (1e6, "M")):
        if abs(usd) >= 10 * size or (letter == "B" and abs(usd) >= size):
            return f"{sign}${abs(usd) / size:,.2f}{letter}"
    return dollars(usd)


def short(duration_h: float | None) -> str:
    return days(duration_h).replace(" days", " d")


def hours(duration_h: float) -> str:
    return f"{duration_h:,.1f} h" if duration_h < 240 else f"{duration_h / 24:,.0f} days"


def number(value: float | None) -> str:
    """Four digits; small rates in percent."""
    return "-" if value is None else f"{value:,.4g}"
