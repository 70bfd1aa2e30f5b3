"""
Limits of PutLogEvents. Pure.

Source: CloudWatch Logs API reference, PutLogEvents: at most 10,000 events and 1,048,576 bytes, each event counted with
26 more; in order of time; within 24 hours; none older than 14 days or more than 2 hours in the future.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast_agent.shipping.lines import Line

MOST_EVENTS = 2_000
MOST_BYTES = 900_000
OVERHEAD_BYTES = 26
SPAN_MS = 24 * 3_600_000
OLDEST_MS, NEWEST_MS = 14 * 24 * 3_600_000, 2 * 3_600_000
_MARGIN_MS = 300_000
"""Allowance for a difference between the service's clock and ours."""


@dataclass(frozen=True)
class Entry:
    time_ms: int
    line: Line


@dataclass(frozen=True)
class Batch:
    """The first pending lines, as many as one request takes."""

    entries: "tuple[Entry, ...]"

    @property
    def last(self) -> Line:
        return self.entries[-1].line

    def events(self) -> "list[dict[str, object]]":
        """Parameter of PutLogEvents: by time, then by order in the file."""
        ordered = sorted(self.entries, key=lambda entry: entry.time_ms)
        return [{"timestamp": entry.time_ms, "message": entry.line.text} for entry in ordered]

    def halves(self) -> "tuple[Batch, Batch]":
        """In the file's order, so that what was put is always the beginning of what is pending."""
        middle = len(self.entries) // 2
        return Batch(self.entries[:middle]), Batch(self.entries[middle:])


def stamped(line: Line, *, now_ms: int) -> Entry:
    """Entry with the time of the event; with now for a line without one, or with a time that is rejected."""
    try:
        time_ms = int(json.loads(line.text)["time_ns"]) // 1_000_000
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Entry(time_ms=now_ms, line=line)
    fits = now_ms - OLDEST_MS + _MARGIN_MS < time_ms < now_ms + NEWEST_MS - _MARGIN_MS
    return Entry(time_ms=time_ms if fits else now_ms, line=line)


def next_batch(waiting: Sequence[Line], *, now_ms: int) -> Batch:
    """As many lines from the beginning as one request takes; at least one."""
    entries: list[Entry] = []
    size = 0
    earliest = latest = 0
    for line in waiting[:MOST_EVENTS]:
        entry = stamped(line, now_ms=now_ms)
        size += len(line.text.encode("utf-8", "replace")) + OVERHEAD_BYTES
        earliest = min(earliest, entry.time_ms) if entries else entry.time_ms
        latest = max(latest, entry.time_ms) if entries else entry.time_ms
        if entries and (size > MOST_BYTES or latest - earliest >= SPAN_MS):
            break
        entries.append(entry)
    return Batch(tuple(entries))
