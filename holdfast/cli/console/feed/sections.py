"""Sections of the page from all that was read, but for incidents, which change less often. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.cli.console.feed.source import ClusterFacts
from holdfast.cli.console.model import groups_of, jobs_of, milliseconds
from holdfast.cli.console.state import LogState
from holdfast.cli.views.incidents import IncidentRow
from holdfast_common import Incident, plain

FoundIncidents = Sequence[tuple[Incident, IncidentRow]]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Range of the log, and progress of reading it."""

    cloud: str
    region: str
    version: str
    since_ns: int
    since: str
    count: int = 0
    read_ns: int | None = None
    """Time of the last look that succeeded."""
    history: tuple[int, int] | None = None
    """Number of events and latest time while the log is read from its beginning."""
    problem: str = ""
    note: str = ""
    gone: str = ""
    gone_ns: int | None = None


def sections_of(
    state: LogState, cluster: ClusterFacts | None, found: FoundIncidents, *, reading: Reading, now_ns: int
) -> dict[str, Any]:
    incidents = [incident for incident, _ in found]
    return {
        "meta": meta_of(cluster, reading=reading, jobs_left_out=state.jobs_left_out),
        "groups": []
        if cluster is None
        else groups_of(
            cluster.groups,
            cluster.nodes,
            jobs=state.jobs.values(),
            incidents=incidents,
            detectors=state.detectors.found(),
        ),
        "jobs": jobs_of(state.jobs.values(), incidents, now_ns=now_ns),
    }


def meta_of(cluster: ClusterFacts | None, *, reading: Reading, jobs_left_out: int) -> dict[str, Any]:
    return {
        "cluster": "" if cluster is None else plain(cluster.name),
        "status": "" if cluster is None else plain(cluster.status),
        "message": "" if cluster is None else plain(cluster.message),
        "orchestrator": "" if cluster is None else cluster.orchestrator,
        "cloud": "AWS" if reading.cloud == "aws" else "local HyperPod",
        "region": plain(reading.region),
        "version": reading.version,
        "since": plain(reading.since),
        "since_ms": milliseconds(reading.since_ns),
        "events": reading.count,
        "read": milliseconds(reading.read_ns),
        "history": None if reading.history is None else [reading.history[0], milliseconds(reading.history[1] or None)],
        "problem": plain(reading.problem),
        "note": plain(reading.note),
        "gone": reading.gone,
        "gone_ms": milliseconds(reading.gone_ns),
        "jobs_left_out": jobs_left_out,
    }
