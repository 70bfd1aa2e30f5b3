"""Values of settings: time spans, limits, exit statuses. Pure; systemd.time(7), systemd.exec(5)."""

from __future__ import annotations

import re
import signal

from .text import Unit, UnitError, words

INFINITY = float("inf")
_UNITS = {
    "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "m": 60,
    "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600, "d": 86400,
    "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
}  # fmt: skip


def seconds(value: str) -> float:
    """Return the seconds of a time span such as ``1min 20s``; a bare number is in seconds."""
    text = value.strip().lower()
    if text == "infinity":
        return INFINITY
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", text)
    if not parts or re.sub(r"[0-9.\sa-z]", "", text) or any(unit not in _UNITS for _, unit in parts):
        raise UnitError(f"not a time span: {value!r}")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def span(unit: Unit, key: str, default: float, *, zero_is_infinity: bool = False) -> float:
    value = unit.one("Service", key)
    found = seconds(value) if value else default
    return INFINITY if zero_is_infinity and found == 0 else found


def limit(value: str) -> tuple[int, int]:
    """Return a resource limit, soft and hard: ``65536``, ``1024:524288`` or ``infinity``."""
    soft, _, hard = value.partition(":")
    return _limit(soft), _limit(hard or soft)


def _limit(value: str) -> int:
    if value.strip() == "infinity":
        return -1
    match = re.fullmatch(r"([0-9]+)([KMGT]?)", value.strip())
    if match is None:
        raise UnitError(f"not a resource limit: {value!r}")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


def statuses(unit: Unit, key: str) -> set[int]:
    """Return exit codes and negative signal numbers of RestartPreventExitStatus= and the like."""
    found = set()
    for word in (w for value in unit.all("Service", key) for w in words(value)):
        if word.isdigit():
            found.add(int(word))
        else:
            found.add(-signal_number(word))
    return found


def signal_number(name: str) -> int:
    if name.isdigit():
        return int(name)
    try:
        return int(signal.Signals["SIG" + name.removeprefix("SIG")])
    except KeyError:
        raise UnitError(f"not a signal: {name!r}") from None
