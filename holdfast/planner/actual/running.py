"""Columns of job events, and other events that end a stretch: a log has millions."""

import itertools
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from holdfast_common import Event, detail_step, kinds

STARTS = frozenset((kinds.JOB_STARTED, kinds.JOB_RESUMED))
MARKS = frozenset((kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED))
_TIME = attrgetter("time_ns")


class OtherEvent(NamedTuple):
    """Kept fields of an event that is not a job's."""

    time_ns: int
    kind: str
    job: str
    node: str
    replaces: str
    step: float | None
    duration_s: float | None

    @staticmethod
    def of(event: Event) -> "OtherEvent":
        return OtherEvent(
            time_ns=event.time_ns,
            kind=event.kind,
            job=event.job,
            node=event.node,
            replaces=str(event.detail.get("replaces", "")),
            step=detail_step(event),
            duration_s=event.duration_s,
        )

    @staticmethod
    def within(ordered: "Sequence[OtherEvent]", start_ns: int, end_ns: int) -> "Sequence[OtherEvent]":
        return ordered[bisect_left(ordered, start_ns, key=_TIME) : bisect_right(ordered, end_ns, key=_TIME)]


class JobEvents:
    """Events of one job in time order; absent steps and durations are NaN."""

    def __init__(self) -> None:
        self.times_ns, self._kinds = array("q"), array("B")
        self._steps, self._durations_s = array("d"), array("d")
        self._names: dict[str, int] = {}
        self._starts: list[int] = []
        self._nodes: list[frozenset[str]] = []

    def add(self, event: Event) -> None:
        step = detail_step(event)
        if event.kind in STARTS:
            self._starts.append(len(self.times_ns))
        if event.kind in STARTS or not self.times_ns:
            self._nodes.append(frozenset(str(event.detail.get("nodes", "")).split(",")) - {""})
        self.times_ns.append(event.time_ns)
        self._kinds.append(self._names.setdefault(event.kind, len(self._names)))
        self._steps.append(math.nan if step is None else step)
        self._durations_s.append(math.nan if event.duration_s is None else event.duration_s)

    def __len__(self) -> int:
        return len(self.times_ns)

    def kind(self, at: int) -> str:
        return self._kind_names[self._kinds[at]]

    @cached_property
    def _kind_names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def step(self, at: int, default: float = 0.0) -> float:
        step = self._steps[at]
        return default if math.isnan(step) else step

    def duration_s(self, at: int) -> float | None:
        duration_s = self._durations_s[at]
        return None if math.isnan(duration_s) else duration_s

    def until(self, time_ns: int) -> int:
        return bisect_right(self.times_ns, time_ns)

    def most_before(self, at: int) -> float:
        return self._most[at - 1]

    @cached_property
    def _most(self) -> "array[float]":
        return array("d", itertools.accumulate((self.step(at) for at in range(len(self))), max))

    def nodes_at(self, count: int) -> frozenset[str]:
        """Nodes of the last start among the first events, or of the first event."""
        has_start = bool(self._starts) and self._starts[0] == 0
        return self._nodes[max(bisect_left(self._starts, count) - has_start, 0)]

    def has_started_at(self, step: float, time_ns: int) -> bool:
        return any(self.times_ns[at] <= time_ns and self.step(at) == step for at in self._starts)

    def kept_until(self) -> list[float]:
        """For each attempt the last step that counts: no later attempt started before it."""
        firsts = [self.step(at) for at in self._starts]
        if not self._starts or self._starts[0]:
            firsts.insert(0, self.step(0))
        kept = [math.inf]
        for later in reversed(firsts[1:]):
            kept.append(min(kept[-1], later))
        return kept[::-1]
