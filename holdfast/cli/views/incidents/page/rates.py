from collections.abc import Iterable
from dataclasses import dataclass

from holdfast_common import Event, detail_step, in_order, kinds

_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_REPORTS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Step rate between two reports of one job."""

    start_ns: int
    end_ns: int
    steps_per_s: float
    """On the average of that time; 0 where it ended with a start from no later step than before."""


@dataclass(frozen=True, kw_only=True)
class LogFacts:
    count: int
    clusters: frozenset[str]
    latest_ns: int
    paces: dict[str, tuple[Pace, ...]]
    """By job, one after the other without a gap, from its first report to its last."""


def read(events: Iterable[Event]) -> LogFacts:
    marks: dict[str, list[tuple[int, float, bool]]] = {}
    clusters: set[str] = set()
    count = latest_ns = 0
    for event in in_order(events):
        count, latest_ns = count + 1, event.time_ns
        if event.cluster:
            clusters.add(event.cluster)
        if event.source == "job" and event.kind in _STARTS + _REPORTS:
            step = detail_step(event)
            if step is not None:
                marks.setdefault(event.job, []).append((event.time_ns, step, event.kind in _STARTS))
    paces = {job: found for job, own in marks.items() if (found := _between(own))}
    return LogFacts(count=count, clusters=frozenset(clusters), latest_ns=latest_ns, paces=paces)


def _between(marks: list[tuple[int, float, bool]]) -> tuple[Pace, ...]:
    found: list[Pace] = []
    at_ns, at_step, _ = marks[0]
    for time_ns, step, is_start in marks[1:]:
        if not is_start and step <= at_step:
            continue
        if time_ns > at_ns:
            rate = max(0.0, step - at_step) / ((time_ns - at_ns) / 1e9)
            found.append(Pace(start_ns=at_ns, end_ns=time_ns, steps_per_s=rate))
        at_ns, at_step = max(at_ns, time_ns), step
    return tuple(found)
