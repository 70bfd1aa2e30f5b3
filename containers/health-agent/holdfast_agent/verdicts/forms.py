"""
Formats of a kernel log, line by line: /dev/kmsg, dmesg, syslog, journal JSON, the agent's recording.

Only the kernel's own lines are returned: any user can write others (``logger``). Writing to /dev/kmsg needs root.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Optional, Union

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts.record import Record, from_recording
from holdfast_agent.verdicts.stamps import ISO, iso_ns, month_number, utc_ns

LONGEST_TEXT = 8192
"""Of a message: the kernel's own limit is near 1,000 characters."""
_BOOT_STEPS_BACK_S = 60.0
"""Processors stamp messages a little out of order; a larger step back is a reboot."""

_KMSG = re.compile(r"(\d{1,6}),(\d+),(\d+),[^;]*;(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\x([0-9a-fA-F]{2})")
_PRIORITY = re.compile(r"<\d{1,3}>")
_DECODED = re.compile(r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *:[a-z]+ *: ?")
_SINCE_BOOT = re.compile(r"\[\s*(\d+\.\d+)(?:@\d+)?(?: <\s*\d+\.\d+>)?\](?:\[\s*[TC]\d+\])? ?")
_DELTA = re.compile(r"\[\s*[+<]\s*\d+\.\d+>?\] ?|\[[A-Z][a-z]{2}\s*\d+ \d\d:\d\d\] ?")
_HUMAN = re.compile(r"\[(?:[A-Z][a-z]{2} +)?([A-Z][a-z]{2}) +(\d+) (\d\d):(\d\d):(\d\d) (\d{4})\] ?")
_FABRIC_MANAGER = re.compile(r"\[([A-Z][a-z]{2}) +(\d+) (\d{4}) (\d\d):(\d\d):(\d\d)\] (?=\[)")
_TRADITIONAL = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d+))? ")
_PROTOCOL_23 = re.compile(r"1 (\S+) \S+ (\S+) (\S+) \S+ (?:-|(?:\[.*?\])+)(?: |$)(?:\ufeff)?")
_UNIX = re.compile(r"(\d{9,11})\.(\d+) ")
_WEEKDAY = re.compile(r"[A-Z][a-z]{2} (?=\d{4}-)")
_SENDER = re.compile(r"(?:\S*[^\s:] )?([A-Za-z][\w./-]*)(?:\[(\d+)\])?: ?")
_TALOS = re.compile(r"(?:[^\s:]+: )?kern: +[a-z]+: \[([^\]]+)\]: ")
_BELIEVED = frozenset({"kernel", "nv-fabricmanager", "nvidia-fabricmanager", "fabricmanager"})
_KERNEL_TEXT = re.compile(r"NVRM: |nvidia-nvswitch\d|(?:\S*[^\s:] )?kernel: ")


def parse_kmsg(raw: str, *, booted_ns: int = 0, line: int = 0) -> Optional[Record]:
    """
    Parse one record of /dev/kmsg; None for others (such as its lines of keys, which begin with a space).

    Args:
        booted_ns: Boot time, UTC. Default: unknown, and so is the record's time.
        line: See Record.
    """
    found = _KMSG.match(raw.rstrip("\n"))
    if found is None:
        return None
    micros, text = int(found[3]), found[4].partition("\n")[0][:LONGEST_TEXT]
    if "\\x" in text:
        text = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)
    time_ns = booted_ns + micros * 1000 if booted_ns else 0
    return Record(text=text, boot_s=micros / 1e6, time_ns=time_ns, line=line, sequence=int(found[2]))


class LogReader:
    """Records of one log, whose lines are given in order; ``year`` is the first line's, for stamps without one."""

    def __init__(self, *, year: int = 2000) -> None:
        self._year = year
        self._month = 0
        self._boots = 1
        self._boot_id = ""
        self._last_s: Optional[float] = None
        self._last_ns = 0
        self._by_wall: Optional[bool] = None
        self._booted_ns = 0
        self._foreign = False
        """The last line with a stamp of syslog or the journal was not the kernel's."""
        self._stamped = False
        """This log has lines of syslog or the journal: one without a stamp continues another."""

    def read(self, raw: str, *, line: int = 0) -> Union[Record, Signal, None]:
        """Record of a line; None if it is not the kernel's."""
        raw = raw.strip("\0\r\n\x1e").replace("\0", "")
        if raw.startswith("data: {"):
            raw = raw[6:]
        if raw.lstrip().startswith("{"):
            return self._json(raw.strip(), line)
        if raw[:1].isdigit() and (record := parse_kmsg(raw, line=line)) is not None:
            return self._placed(record.text, record.boot_s, 0, line, sequence=record.sequence)
        return self._text(raw, line)

    def _text(self, raw: str, line: int) -> Optional[Record]:
        text = _PRIORITY.sub("", raw, count=1) if raw.startswith("<") else raw
        if found := _DECODED.match(text):
            text = text[found.end() :]
        if found := _SINCE_BOOT.match(text):
            return self._sent(text[found.end() :], float(found[1]), 0, line)
        if found := _TALOS.match(text):
            stamp = ISO.match(found[1])
            return self._placed(text[found.end() :], None, iso_ns(stamp) if stamp else 0, line)
        if found := _HUMAN.match(text):
            time_ns = self._dated(found[1], int(found[2]), (found[3], found[4], found[5]), year=int(found[6]))
            return self._placed(text[found.end() :], None, time_ns, line)
        if found := _FABRIC_MANAGER.match(text):
            time_ns = self._dated(found[1], int(found[2]), (found[4], found[5], found[6]), year=int(found[3]))
            return self._placed(text[found.end() :], None, time_ns, line)
        if found := _DELTA.match(text):
            return self._placed(text[found.end() :], None, 0, line)
        return self._syslog(text, line)

    def _syslog(self, text: str, line: int) -> Optional[Record]:
        if found := _TRADITIONAL.match(text):
            time_ns = self._dated(found[1], int(found[2]), (found[3], found[4], found[5]), fraction=found[6] or "")
            return self._from_program(text[found.end() :], time_ns, line)
        if found := _PROTOCOL_23.match(text):
            stamp = ISO.match(found[1])
            self._stamped, self._foreign = True, not _is_believed(found[2], process=found[3].strip("-"))
            return self._sent(text[found.end() :], None, iso_ns(stamp) if stamp else 0, line) if self._ours() else None
        text = _WEEKDAY.sub("", text, count=1)
        if found := ISO.match(text):
            if found[7] == ",":  # only dmesg writes fractions so
                return self._placed(text[found.end() :], None, iso_ns(found), line)
            return self._from_program(text[found.end() :], iso_ns(found), line)
        if found := _UNIX.match(text):
            time_ns = int(found[1]) * 1_000_000_000 + int(found[2][:9].ljust(9, "0"))
            return self._from_program(text[found.end() :], time_ns, line)
        if self._stamped and not (text[:1].isspace() and self._ours()):
            return None
        return self._placed(text.strip(), None, 0, line)

    def _from_program(self, rest: str, time_ns: int, line: int) -> Optional[Record]:
        """Parse host, program and text behind a syslog stamp; some templates omit host and program."""
        sender = None if _KERNEL_TEXT.match(rest) else _SENDER.match(rest)
        self._stamped = True
        self._foreign = sender is not None and not _is_believed(sender[1], process=sender[2])
        if not self._ours():
            return None
        return self._sent(rest[sender.end() :] if sender else rest, None, time_ns, line)

    def _ours(self) -> bool:
        return not self._foreign

    def _sent(self, text: str, boot_s: Optional[float], time_ns: int, line: int) -> Record:
        """Parse a text that may begin with host and ``kernel:``, or with the kernel's stamp."""
        host, found, rest = text.partition("kernel: ")
        if found and (not host or (host.endswith(" ") and " " not in host[:-1])):
            text = rest
        if boot_s is None and (stamp := _SINCE_BOOT.match(text)):
            boot_s, text = float(stamp[1]), text[stamp.end() :]
        return self._placed(text.replace("#012", "\n"), boot_s, time_ns, line)

    def _json(self, raw: str, line: int) -> Union[Record, Signal, None]:
        try:
            values = json.loads(raw)
        except (ValueError, RecursionError):
            return self._placed(raw, None, 0, line)  # a torn line; who looks for a code will not find one
        if not isinstance(values, dict):
            return None
        if "MESSAGE" not in values:
            seen = from_recording(values, line=line)
            if isinstance(seen, Record):
                return self._placed(seen.text, seen.boot_s, seen.time_ns, line, boot=seen.boot, sequence=seen.sequence)
            return seen
        self._stamped = True
        self._foreign = values.get("_TRANSPORT", values.get("SYSLOG_IDENTIFIER", "kernel")) != "kernel"
        if not self._ours() and values.get("SYSLOG_IDENTIFIER") not in _BELIEVED - {"kernel"}:
            return None
        monotonic = _micros(values, "_SOURCE_MONOTONIC_TIMESTAMP") or _micros(values, "__MONOTONIC_TIMESTAMP")
        wall = _micros(values, "__REALTIME_TIMESTAMP") or _micros(values, "_SOURCE_REALTIME_TIMESTAMP")
        boot_s = None if monotonic is None else monotonic / 1e6
        return self._placed(
            _message(values["MESSAGE"]), boot_s, (wall or 0) * 1000, line, boot=str(values.get("_BOOT_ID", ""))
        )

    def _dated(self, month: str, day: int, clock: "tuple[str, str, str]", *, year: int = 0, fraction: str = "") -> int:
        number = month_number(month) or 1
        if not year:
            # A log is in order, so a month far before the last one is of the next year.
            self._year += number + 6 < self._month
            self._month, year = number, self._year
        hour, minute, second = (int(part) for part in clock)
        return utc_ns(date=(year, number, day), clock=(hour, minute, second), fraction=fraction)

    def _placed(
        self,
        text: str,
        boot_s: Optional[float],
        time_ns: int,
        line: int,
        *,
        boot: str = "",
        sequence: Optional[int] = None,
    ) -> Record:
        started = text.startswith("Linux version ") and self._last_s is not None
        fell = boot_s is not None and boot_s + _BOOT_STEPS_BACK_S < (self._last_s or 0.0) and not self._by_wall
        if started or fell or (boot and self._boot_id not in ("", boot)):
            self._boots += 1
            self._booted_ns = 0
        self._boot_id = boot or self._boot_id
        if self._by_wall is None and (boot_s is not None or time_ns):
            self._by_wall = boot_s is None
        if self._by_wall and time_ns:
            boot_s = None
        elif boot_s is None and time_ns and self._booted_ns:
            boot_s = (time_ns - self._booted_ns) / 1e9
        elif boot_s is not None and time_ns:
            self._booted_ns = time_ns - int(boot_s * 1e9)
        elif boot_s is None and not time_ns:
            boot_s, time_ns = (None if self._by_wall else self._last_s), self._last_ns
        if boot_s is not None or time_ns:
            self._last_s = time_ns / 1e9 if boot_s is None else boot_s
            self._last_ns = time_ns
        return Record(
            text=text[:LONGEST_TEXT].rstrip(),
            boot_s=boot_s,
            time_ns=time_ns,
            line=line,
            boot=f"{self._boot_id}/{self._boots}",
            sequence=sequence,
        )


def _is_believed(program: str, *, process: Optional[str]) -> bool:
    """The kernel has no pid: a line with one is from another program."""
    return program in _BELIEVED and not (program == "kernel" and process)


def _micros(values: Mapping[str, Any], name: str) -> Optional[int]:
    try:
        return int(values[name])
    except (KeyError, TypeError, ValueError):
        return None


def _message(value: object) -> str:
    """The journal writes a text that is not UTF-8, or has control characters, as a list of bytes."""
    if isinstance(value, list):
        if value and isinstance(value[-1], str):
            return value[-1]
        return bytes(item & 0xFF for item in value if isinstance(item, int)).decode(errors="replace")
    return value if isinstance(value, str) else ""
