"""The log from its beginning, read in a thread while the newest events are shown already."""

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from holdfast.cli.console.feed.intake import Intake
from holdfast.cli.console.feed.pacing import Paced
from holdfast.cli.console.feed.source import ClusterFacts
from holdfast_common import Event

BATCH = 2000
ENDS_WITHIN_S = 2.0


class Source(Protocol):
    note: str

    def cluster(self) -> ClusterFacts | None: ...

    def events(self, *, since_ns: int) -> Iterator[Event]: ...

    def is_taken_down(self) -> bool: ...


class History:
    def __init__(
        self, source: Source, *, since_ns: int, stopping: threading.Event, failures: tuple[type[Exception], ...]
    ) -> None:
        self._source, self._since_ns, self._stopping, self._failures = source, since_ns, stopping, failures
        self._pace = Paced(0.0)
        self._thread: threading.Thread | None = None
        self._being_built: Intake | None = None
        self._built: Intake | None = None
        self.has_begun = False

    def begin_when_due(self) -> None:
        """Begin to read, unless it is being read or was read a moment ago."""
        if self._thread is None and self._pace.is_due(changed=True):
            self.has_begun = True
            self._thread = threading.Thread(target=self._read, name="history", daemon=True)
            self._thread.start()

    def built(self) -> Intake | None:
        """Return what was read, once."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        built, self._built = self._built, None
        self.has_begun = built is not None
        return built

    def progress(self) -> tuple[int, int] | None:
        """Number of events so far, and time of the latest; None while nothing is read."""
        building = self._being_built
        return None if building is None else (building.state.count, building.newest_ns)

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(ENDS_WITHIN_S)

    def _read(self) -> None:
        intake = self._being_built = Intake()
        try:
            with self._pace.timed():
                events = self._source.events(since_ns=self._since_ns)
                while not self._stopping.is_set() and (batch := list(itertools.islice(events, BATCH))):
                    intake.take(batch)
                    intake.state.settle(time.time_ns())
                self._built = intake
        except self._failures:
            self._built = None  # the look at the newest events reports it, and this is tried again
        finally:
            self._being_built = None
