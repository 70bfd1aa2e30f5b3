"""
Events by their time, each once: of a list, or of a file that is read at each iteration and never held in memory.

Of a line of a file only its time and place are kept, 16 bytes. So a log of any size is read in as much memory as its
reader needs for what it computes.
"""

import itertools
import re
import weakref
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Optional

from holdfast_common import kinds
from holdfast_common.events import Event
from holdfast_common.schema import EventError

LONGEST_LINE = 1 << 20
"""Bytes. CloudWatch Logs takes no larger event ("CloudWatch Logs quotas")."""
_WRITTEN = re.compile(rb'\{"version":1,"time_ns":(\d{1,18}|[1-8]\d{18}),')
"""The beginning of a line as ``Event.to_json`` writes it; any other line is parsed to find its time."""
_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_CHUNK = 1 << 20


class OrderedEvents:
    """Iterated as often as needed. Of one instant always in the same order, however they came."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = _unique(events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)


def in_order(events: Iterable[Event]) -> OrderedEvents:
    """Those events, sorted unless they are so already."""
    return events if isinstance(events, OrderedEvents) else OrderedEvents(events)


@dataclass(frozen=True)
class Problems:
    """Lines that are no events."""

    count: int
    first: str
    """The first of them: its number and what is wrong with it."""


class StoredEvents(OrderedEvents):
    """Events of a file of JSON lines. A line that is none is left out and counted, never hidden."""

    def __init__(self, file: BinaryIO) -> None:
        """``file`` has to be seekable; it is closed once nobody has these events any more."""
        weakref.finalize(self, file.close)
        self._file, self._position = file, file.seek(0)
        self._times_ns, self._places = array("q"), array("q")
        self._is_sorted = True
        self._without_time = self._index()
        self._broken: Optional[_Broken] = None

    def __iter__(self) -> Iterator[Event]:
        broken = _Broken(self._without_time.count, self._without_time.place, self._without_time.reason)
        places: Iterable[int] = range(len(self._places))
        if not self._is_sorted:
            places = sorted(places, key=self._times_ns.__getitem__)
        for time_ns, at_once in itertools.groupby(places, key=self._times_ns.__getitem__):
            found = [event for place in at_once if (event := self._event(place, time_ns, broken)) is not None]
            yield from found if len(found) < 2 else _unique(found)
        self._broken = broken

    @property
    def problems(self) -> Optional[Problems]:
        """None where each line is an event. Reads all lines, unless an iteration has come to its end before."""
        if self._broken is None:
            for _ in self:
                pass
        broken = self._broken
        if broken is None or not broken.count:
            return None
        return Problems(broken.count, f"line {self._number(broken.place)}: {broken.reason}")

    def _index(self) -> "_Broken":
        """Note time and place of each line that has a time."""
        broken, place, latest_ns = _Broken(), 0, 0
        while line := self._file.readline(LONGEST_LINE):
            begun, place = place, place + len(line)
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                place += self._skip_line()
                broken.add(begun, f"longer than {LONGEST_LINE} bytes")
                continue
            written = _WRITTEN.match(line)
            if written is not None:
                time_ns = int(written[1])
            elif line.isspace():
                continue
            else:
                try:
                    time_ns = _parsed(line).time_ns
                except EventError as error:
                    broken.add(begun, str(error))
                    continue
            self._times_ns.append(time_ns)
            self._places.append(begun)
            self._is_sorted = self._is_sorted and latest_ns <= time_ns
            latest_ns = time_ns
        self._position = place
        return broken

    def _skip_line(self) -> int:
        skipped = 0
        while rest := self._file.readline(LONGEST_LINE):
            skipped += len(rest)
            if rest.endswith(b"\n"):
                break
        return skipped

    def _event(self, at: int, time_ns: int, broken: "_Broken") -> Optional[Event]:
        place = self._places[at]
        if place != self._position:
            self._file.seek(place)
        line = self._file.readline(LONGEST_LINE)
        self._position = place + len(line)
        try:
            event = _parsed(line)
        except EventError as error:
            broken.add(place, str(error))
            return None
        if event.time_ns != time_ns:
            broken.add(place, "time_ns stands twice in it")
            return None
        return event

    def _number(self, place: int) -> int:
        """Of the line that begins there."""
        self._file.seek(0)
        number = 1
        while place > 0 and (chunk := self._file.read(min(place, _CHUNK))):
            number, place = number + chunk.count(b"\n"), place - len(chunk)
        self._position = self._file.tell()
        return number


@dataclass
class _Broken:
    """How many lines are no events, and the first of them in the file."""

    count: int = 0
    place: int = -1
    reason: str = ""

    def add(self, place: int, reason: str) -> None:
        if not self.count or place < self.place:
            self.place, self.reason = place, reason
        self.count += 1


def _parsed(line: bytes) -> Event:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise EventError(f"not UTF-8: byte {line[error.start]:#04x} at {error.start + 1}") from None
    return Event.from_json(text)


def _unique(events: Iterable[Event]) -> "list[Event]":
    unique = {event.to_json(): event for event in events}
    return [unique[line] for line in sorted(unique, key=lambda line: (unique[line].time_ns, _rank(unique[line]), line))]


def _rank(event: Event) -> int:
    """At one instant a start comes before the steps of it, and the finish comes last."""
    return 0 if event.kind in _STARTS else 2 if event.kind == kinds.JOB_FINISHED else 1
