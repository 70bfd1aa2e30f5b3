"""Reads cluster and event log again and again, and publishes what the page shows."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from botocore.exceptions import BotoCoreError

from holdfast.cli.console.feed.board import Board
from holdfast.cli.console.feed.history import History, Source
from holdfast.cli.console.feed.intake import Intake
from holdfast.cli.console.feed.pacing import Pace, Paced
from holdfast.cli.console.feed.sections import FoundIncidents, Reading, sections_of
from holdfast.cli.console.feed.source import ClusterFacts
from holdfast.cli.console.model import incidents_of
from holdfast.cli.deployed import AwsError, UnreachableError
from holdfast.cli.terminal import CommandError
from holdfast.cli.views.incidents import Clock, Fleet, rows_in

SECOND = 1_000_000_000
FIRST_NS = 900 * SECOND
"""Read before the page is shown; the rest of the log follows."""
OVERLAP_NS, LONG_OVERLAP_NS, LONG_EVERY_S = 30 * SECOND, 900 * SECOND, 60.0
"""Read again at each look, and now and then: collectors ship late."""
INCIDENTS_EVERY_S, RETRY_S = 10.0, 5.0
SHARE = 0.008
"""Most of a core for looks."""
TAKEN_DOWN = "the cluster was taken down"
FAILURES = (AwsError, UnreachableError, CommandError, BotoCoreError, OSError)


class Feed:
    """One thread that reads, and a second one while the history is read."""

    def __init__(
        self, source: Source, board: Board, *, reading: Reading, fleet: Callable[[ClusterFacts], Fleet], pace: Pace
    ) -> None:
        self._source, self._board, self._pace, self._fleet_of = source, board, pace, fleet
        self._reading = reading
        self._intake = Intake()
        self._cluster: ClusterFacts | None = None
        self._fleet = Fleet()
        self._stopping = threading.Event()
        self._history = History(source, since_ns=reading.since_ns, stopping=self._stopping, failures=FAILURES)
        self._found: FoundIncidents = []
        self._changes, self._incidents_pace = -1, Paced(INCIDENTS_EVERY_S)
        self._incidents_s = 0.0
        """Spent on them at this look."""
        self._cluster_due_s = self._long_due_s = 0.0

    def run(self) -> str:
        """Read until stopped, or until the cluster is gone; return the reason of the latter."""
        self._board.show(self._intake.state)
        gone = ""
        try:
            while not gone and not self._stopping.is_set():
                begun_s = time.thread_time()
                gone = self._look()
                if gone:
                    self._reading = replace(self._reading, gone=gone, gone_ns=time.time_ns())
                self._publish()
                self._stopping.wait(RETRY_S if self._reading.problem else self._rest_s(time.thread_time() - begun_s))
        finally:
            self._stopping.set()
            self._history.join()
        return gone

    def _rest_s(self, spent_s: float) -> float:
        """Seconds until the next look: the more nodes there are, the more it costs. Incidents have their own pace."""
        return max(self._pace.events_s, (spent_s - self._incidents_s) / SHARE)

    def stop(self) -> None:
        self._stopping.set()

    def _look(self) -> str:
        try:
            if self._source.is_taken_down() or not self._look_at_cluster():
                return TAKEN_DOWN
            self._look_at_events()
            self._reading = replace(self._reading, problem="", note=self._source.note, read_ns=time.time_ns())
        except FAILURES as error:
            if self._source.is_taken_down():
                return TAKEN_DOWN
            self._reading = replace(self._reading, problem=str(error))
        return ""

    def _look_at_cluster(self) -> bool:
        """Return False for a cluster that is gone. Raises: CommandError: it has not existed yet."""
        if time.monotonic() < self._cluster_due_s:
            return True
        found = self._source.cluster()
        if found is None and self._cluster is None:
            raise CommandError("there is no such cluster yet")
        self._cluster_due_s = time.monotonic() + self._pace.cluster_s
        if found is not None:
            self._cluster, self._fleet = found, self._fleet_of(found)
        return found is not None

    def _look_at_events(self) -> None:
        since_ns = self._reading.since_ns
        if newest_ns := self._intake.newest_ns:
            is_long = time.monotonic() >= self._long_due_s
            back_ns = LONG_OVERLAP_NS if is_long else OVERLAP_NS
            self._long_due_s = time.monotonic() + LONG_EVERY_S if is_long else self._long_due_s
            since_ns = max(since_ns, min(newest_ns, time.time_ns()) - back_ns)
        else:
            since_ns = max(since_ns, time.time_ns() - FIRST_NS)
        found = list(self._source.events(since_ns=since_ns))
        with self._board.changing():
            self._intake.take(found)
            self._intake.state.settle(time.time_ns())
        built = self._history.built()
        if built is not None:
            built.take(found)
            built.state.settle(time.time_ns())
            self._intake, self._changes = built, -1
            self._board.show(built.state)
        elif self._intake.state.is_stale or not self._history.has_begun:
            self._history.begin_when_due()

    def _publish(self) -> None:
        state, self._incidents_s = self._intake.state, 0.0
        reading = replace(self._reading, history=self._history.progress(), count=state.count)
        sections = {}
        if self._incidents_pace.is_due(changed=state.changes != self._changes):
            self._changes, begun_s = state.changes, time.thread_time()
            with self._incidents_pace.timed():
                self._found = rows_in(state.incidents, self._fleet, stalls=Clock())
                sections = {"incidents": incidents_of(self._found)}
            self._incidents_s = time.thread_time() - begun_s
        sections |= sections_of(state, self._cluster, self._found, reading=reading, now_ns=time.time_ns())
        self._board.publish(sections)
