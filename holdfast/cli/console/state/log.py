"""State of the event log, of bounded size. Pure: the time is an argument."""

import bisect
from collections.abc import Iterable
from operator import attrgetter

from holdfast.cli.console.state.jobs import JobState
from holdfast.cli.console.state.recent import REPORTS, RecentEvents
from holdfast_common import Event, IncidentReader, LostDetectors, kinds

SETTLES_NS = 2_000_000_000
"""Collectors ship an event within this time, so that later ones are in order."""
MOST_JOBS = 100
_TIME = attrgetter("time_ns")


class LogState:
    """
    Events up to a moment: jobs, incidents, lost detectors, and the newest events.

    ``add`` takes each event once. The newest wait until they have settled; one that arrives later makes the state
    ``stale``: incidents are computed from events in order of time, so it is to be built again.
    """

    def __init__(self) -> None:
        self.recent = RecentEvents()
        self.incidents = IncidentReader()
        self.detectors = LostDetectors()
        self.jobs: dict[str, JobState] = {}
        self.clusters: set[str] = set()
        self.settled_ns = 0
        self.count = 0
        self.is_stale = False
        self.jobs_left_out = 0
        self.changes = 0
        """Events that may have changed an incident."""
        self._waiting: list[Event] = []

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self.recent.add(event)
            self.count += 1
            if event.time_ns < self.settled_ns:
                if event.kind in REPORTS:
                    continue  # a later report has more steps
                self.is_stale = True
            bisect.insort(self._waiting, event, key=_TIME)

    def add_settled(self, events: Iterable[Event]) -> None:
        """Account for all events of a log, in order of time."""
        for event in events:
            self.recent.add(event)
            self.count += 1
            self._account(event)

    def settle(self, now_ns: int) -> None:
        """Account for events that are older than the time in which they settle."""
        ready = bisect.bisect_right(self._waiting, now_ns - SETTLES_NS, key=_TIME)
        for event in self._waiting[:ready]:
            self._account(event)
        del self._waiting[:ready]

    @property
    def latest_ns(self) -> int:
        return max(self.settled_ns, self._waiting[-1].time_ns if self._waiting else 0)

    def _account(self, event: Event) -> None:
        self.settled_ns = max(self.settled_ns, event.time_ns)
        self.incidents.add(event)
        self.detectors.add(event)
        self.changes += event.kind not in REPORTS
        if event.cluster:
            self.clusters.add(event.cluster)
        if event.job and (event.source == "job" or event.kind == kinds.JOB_SUBMITTED):
            job = self.jobs.get(event.job)
            if job is None:
                job = self.jobs[event.job] = JobState(event.job)
                self._drop_a_job()
            job.add(event)

    def _drop_a_job(self) -> None:
        """Drop the job that ended first, or else the one that reported last long ago."""
        if len(self.jobs) <= MOST_JOBS:
            return
        oldest = min(list(self.jobs.values())[:-1], key=lambda job: (not job.ended_by, job.ended_ns or job.seen_ns))
        del self.jobs[oldest.job]
        self.jobs_left_out += 1
