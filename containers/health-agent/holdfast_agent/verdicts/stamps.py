"""Times of logs, without a clock or a local time zone."""

import re
from typing import Optional

_MONTHS = {
    name: number
    for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)  # noqa: SIM905
}
ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:([.,])(\d{1,9}))?(?: ?(Z|UTC|[+-]\d\d:?\d\d)(?=\s|$))?\s*"
)


def utc_ns(*, date: "tuple[int, int, int]", clock: "tuple[int, int, int]", fraction: str = "", zone: str = "") -> int:
    """Nanoseconds since 1970; no zone is UTC. An invalid date gives some number."""
    year, month, day = date
    # Days of the proleptic Gregorian calendar, counted in years that begin in March.
    year -= month <= 2
    era_years = year % 400
    days_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = year // 400 * 146097 + era_years * 365 + era_years // 4 - era_years // 100 + days_of_year - 719468
    seconds = days * 86400 + clock[0] * 3600 + clock[1] * 60 + clock[2] - _offset_s(zone)
    return seconds * 1_000_000_000 + int(fraction[:9].ljust(9, "0") or "0")


def _offset_s(zone: str) -> int:
    if zone[:1] not in ("+", "-"):
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    return -seconds if zone[0] == "-" else seconds


def iso_ns(found: "re.Match[str]") -> int:
    year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
    return utc_ns(date=(year, month, day), clock=(hour, minute, second), fraction=found[8] or "", zone=found[9] or "")


def month_number(name: str) -> Optional[int]:
    """1 for Jan; None if invalid."""
    return _MONTHS.get(name)


def rfc_3339(time_ns: int) -> str:
    """``2025-02-23T16:24:18Z``, with up to six digits of the second."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    days, second = divmod(seconds, 86400)
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day, month = day_of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    micros = f".{nanoseconds // 1000:06d}".rstrip("0").rstrip(".")
    return f"{year:04d}-{month:02d}-{day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{micros}Z"


def since_boot(boot_s: float) -> str:
    """``+12.5s``."""
    text = f"{boot_s:.6f}".rstrip("0")
    return f"+{text}0s" if text.endswith(".") else f"+{text}s"
