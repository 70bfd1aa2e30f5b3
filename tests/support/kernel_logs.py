"""What a kernel said, written down in each form in which a log keeps it."""

import json
from collections.abc import Callable, Sequence

from holdfast_agent.verdicts import Record, recorded, rfc_3339

BOOTED_NS = 1_740_000_000_000_000_000  # 2025-02-19T21:20:00Z
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
YEAR = 2025

Said = Sequence[tuple[float, str]]
"""Seconds since boot, and what was said then."""


def _traditional(boot_s: float) -> str:
    stamp = rfc_3339(wall_ns(boot_s))
    return f"{MONTHS[int(stamp[5:7]) - 1]} {int(stamp[8:10]):2d} {stamp[11:19]}"


def wall_ns(boot_s: float) -> int:
    return BOOTED_NS + round(boot_s * 1e6) * 1000


def kmsg(said: Said) -> str:
    texts = (text.replace("\n", "\\x0a") for _, text in said)
    return "".join(
        f"4,{1000 + number},{round(boot_s * 1e6)},-;{text}\n"
        for number, ((boot_s, _), text) in enumerate(zip(said, texts, strict=True))
    )


def dmesg(said: Said) -> str:
    return "".join(f"[{boot_s:12.6f}] {_padded(text)}\n" for boot_s, text in said)


def _padded(text: str) -> str:
    """Lines of one record after its first have spaces where the stamp would be."""
    return text.replace("\n", "\n" + " " * 15)


def dmesg_human(said: Said) -> str:
    return "".join(f"[Wed {_traditional(boot_s)} {YEAR}] {_padded(text)}\n" for boot_s, text in said)


def dmesg_iso(said: Said) -> str:
    def stamp(boot_s: float) -> str:
        whole = rfc_3339(wall_ns(boot_s) // 1_000_000_000 * 1_000_000_000)
        return f"{whole[:-1]},{round(boot_s * 1e6) % 1_000_000:06d}+00:00"

    return "".join(f"kern  :warn  : {stamp(boot_s)} {_padded(text)}\n" for boot_s, text in said)


def syslog(said: Said) -> str:
    return "".join(
        f"{_traditional(boot_s)} ip-10-1-0-12 kernel: [{boot_s:12.6f}] {_escaped(text)}\n" for boot_s, text in said
    )


def syslog_without_kernel_stamps(said: Said) -> str:
    return "".join(f"{rfc_3339(wall_ns(boot_s))} ip-10-1-0-12 kernel: {_escaped(text)}\n" for boot_s, text in said)


def _escaped(text: str) -> str:
    """As rsyslog writes line ends inside of a message."""
    return text.replace("\n", "#012")


def syslog_5424(said: Said) -> str:
    return "".join(
        f"<4>1 {rfc_3339(wall_ns(boot_s))} ip-10-1-0-12 kernel - - - {_escaped(text)}\n" for boot_s, text in said
    )


def journal(said: Said) -> str:
    return "".join(json.dumps(_entry(boot_s, text)) + "\n" for boot_s, text in said)


def journal_of_bytes(said: Said) -> str:
    return "".join(json.dumps(_entry(boot_s, list(text.encode()))) + "\n" for boot_s, text in said)


def _entry(boot_s: float, message: object) -> dict[str, object]:
    return {
        "_TRANSPORT": "kernel",
        "SYSLOG_IDENTIFIER": "kernel",
        "PRIORITY": "4",
        "MESSAGE": message,
        "__REALTIME_TIMESTAMP": str(wall_ns(boot_s) // 1000),
        "_SOURCE_MONOTONIC_TIMESTAMP": str(round(boot_s * 1e6)),
        "_BOOT_ID": "5f0c6d1a",
    }


def recording(said: Said) -> str:
    return "".join(recorded(Record(text=text, boot_s=boot_s, time_ns=wall_ns(boot_s))) + "\n" for boot_s, text in said)


FORMS: dict[str, Callable[[Said], str]] = {
    "kmsg": kmsg,
    "dmesg": dmesg,
    "dmesg human": dmesg_human,
    "dmesg iso": dmesg_iso,
    "syslog": syslog,
    "syslog without kernel stamps": syslog_without_kernel_stamps,
    "syslog 5424": syslog_5424,
    "journal": journal,
    "journal of bytes": journal_of_bytes,
    "recording": recording,
}
