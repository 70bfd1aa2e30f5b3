"""
Events by time, each once: from a list, or a file that is read at each iteration.

Only time and place of each line are kept, 16 bytes, so memory does not grow with the content.
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
"""Bytes. Largest event of CloudWatch Logs ("CloudWatch Logs quotas")."""
_WRITTEN = re.compile(rb'\{"version":1,"time_ns":(\d{1,18}|[1-8]\d{18}),')
"""The beginning of a line as ``Event.to_json`` writes it; any other line is parsed to find its time."""
_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_CHUNK = 1 << 20


class OrderedEvents:
    """Can be iterated repeatedly; events of one instant have a fixed order."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = _unique(events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)


def in_order(events: Iterable[Event]) -> OrderedEvents:
    return events if isinstance(events, OrderedEvents) else OrderedEvents(events)


@dataclass(frozen=True)
class Problems:
    count: int
    first: str
    """The first of them: its number and what is wrong with it."""


class StoredEvents(OrderedEvents):
    """Events of a file of JSON lines; invalid lines are counted."""

    def __init__(self, file: BinaryIO) -> None:
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
        """None if each line is an event. Reads all lines, unless an iteration has."""
        if self._broken is None:
            for _ in self:
                pass
        broken = self._broken
        if broken is None or not broken.count:
            return None
        return Problems(broken.count, f"line {self._number(broken.place)}: {broken.reason}")

    def _index(self) -> "_Broken":
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
            broken.add(place, "time_ns occurs twice")
            return None
        return event

    def _number(self, place: int) -> int:
        self._file.seek(0)
        number = 1
        while place > 0 and (chunk := self._file.read(min(place, _CHUNK))):
            number, place = number + chunk.count(b"\n"), place - len(chunk)
        self._position = self._file.tell()
        return number


@dataclass
class _Broken:
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
    """At one instant a start precedes its steps, and the finish is last."""
    return 0 if event.kind in _STARTS else 2 if event.kind == kinds.JOB_FINISHED else 1
