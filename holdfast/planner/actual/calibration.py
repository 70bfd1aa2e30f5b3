"""
Calibration of a plan from events: failure rate of instances, and duration of each stage.

Injected faults count for the stages only. Verdicts that were withdrawn, or request nothing, count for neither.

Instance-hours count while an instance is in service: from ``node_in_service``, ``node_replaced``, ``node_rebooted`` or
the first event of its agent or lifecycle, to ``node_lost``, ``node_failed``, ``node_deleted``, ``cluster_deleted`` or
the latest event.

Every user of a node can write job logs, so failures, instance-hours, detection and replacement times never come from
them. Times to resume and to save have no other source: ``REPORTED`` names these.
"""

import itertools
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.planner.actual.ledger import Books, Ledger
from holdfast.planner.model import (
    RateEstimate,
    Scenario,
    Strategy,
    TimeEstimate,
    estimate_rate,
    estimate_time,
    goodput,
)
from holdfast_common import Event, Incident, IncidentReader, When, in_order, kinds

EMPTY: Mapping[str, float] = {}
_NS_PER_HOUR = 3.6e12
_LOST = (kinds.NODE_LOST, kinds.NODE_FAILED)
_GONE = (*_LOST, kinds.NODE_DELETED, kinds.NODE_REPLACING, kinds.NODE_REBOOTING)
_THERE = (kinds.NODE_IN_SERVICE, kinds.NODE_REPLACED, kinds.NODE_REBOOTED)
_FIRST_WORDS = (kinds.AGENT_STARTED, kinds.LIFECYCLE_FINISHED)
NOT_IN_SERVICE = "lifecycle-failed"
"""The fault of an instance that never came into service; it stopped no job."""

STAGES = ("detect", "replace", "resume", "checkpoint write", "checkpoint interval")
REPORTED = ("resume", "checkpoint write", "checkpoint interval")
"""Stages that are learned from the reports of jobs alone."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Estimates from events, each with its 95 % interval; None if not measured."""

    rate: RateEstimate | None
    stages: dict[str, TimeEstimate]
    """Mean seconds by name of the stage, of ``STAGES``; absent where none was seen."""
    injected: int
    """Faults that were injected, left out of the rate."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    what: str
    plan: float | None
    actual: float | None
    low: float | None
    high: float | None
    reported_by_jobs: bool = False
    """Whether the actual figure is known from the logs of jobs alone, which every user of a node can write."""

    @property
    def within(self) -> bool | None:
        """Return True if the plan is in the measured interval; None without an interval."""
        if self.plan is None or self.low is None or self.high is None:
            return None
        return self.low <= self.plan <= self.high


@dataclass(frozen=True, kw_only=True)
class PlanAgainstActual:
    comparisons: tuple[Comparison, ...]
    ledgers: tuple[Ledger, ...]
    calibration: Calibration


@dataclass(frozen=True, kw_only=True)
class LearnedValues:
    calibration: Calibration
    ledgers: tuple[Ledger, ...]


def learn(events: Iterable[Event]) -> LearnedValues:
    """Calibrate from events in any order, repeats included, in one pass."""
    reader, hours, checkpoints, books = IncidentReader(), _InstanceHours(), _CheckpointSeconds(), Books()
    for event in in_order(events):
        reader.add(event)
        hours.add(event)
        checkpoints.add(event)
        books.add(event)
    incidents = reader.incidents()
    seconds: dict[str, Sequence[float]] = {**_stage_seconds(incidents), **checkpoints.seconds}
    estimates = {name: estimate_time(values) for name, values in seconds.items()}
    calibration = Calibration(
        rate=estimate_rate(failures=_failures(incidents), instance_hours=hours.total()),
        stages={name: each for name in STAGES if (each := estimates[name]) is not None},
        injected=sum(each.injected_ns is not None for each in incidents),
    )
    return LearnedValues(calibration=calibration, ledgers=books.ledgers())


def calibrate(events: Iterable[Event]) -> Calibration:
    return learn(events).calibration


def _failures(incidents: Iterable[Incident]) -> int:
    own = [
        each
        for each in incidents
        if each.injected_ns is None
        and each.fault != NOT_IN_SERVICE
        and not each.needs_no_repair
        and not each.is_of_process
    ]
    ended = {(each.node, each.restored_ns) for each in own if each.restored_ns is not None}
    return len(ended) + sum(each.restored_ns is None for each in own)


@dataclass(frozen=True, kw_only=True)
class KnownValues:
    """Known values that replace assumptions; None if unknown."""

    per_instance_hour: float | None = None
    detect_s: float | None = None
    replace_s: float | None = None
    resume_s: float | None = None
    write_s: float | None = None

    def but(self, better: "KnownValues") -> "KnownValues":
        """Return the same, overridden by the known values of ``better``."""
        return replace(self, **{name: value for name, value in vars(better).items() if value is not None})

    def applied_to(self, strategy: Strategy) -> Strategy:
        stages = {name: getattr(self, name) for name in ("detect_s", "replace_s", "resume_s")}
        return replace(strategy, **{name: value for name, value in stages.items() if value is not None})

    def as_replaced_in(self, strategy: Strategy, *, measured: Strategy) -> Strategy:
        """Replacement time for another strategy with the same replacement; it keeps its other times."""
        if self.detect_s is None and self.replace_s is None:
            return strategy
        return replace(strategy, replace_s=max(0.0, measured.detect_s + measured.replace_s - strategy.detect_s))


def known(calibration: Calibration) -> KnownValues:
    """Measured values; the rate only if failures were seen."""
    rate = calibration.rate
    means = {name: each.mean_s for name, each in calibration.stages.items()}
    return KnownValues(
        per_instance_hour=min(1.0, rate.per_instance_hour) if rate is not None and rate.failures > 0 else None,
        detect_s=means.get("detect"),
        replace_s=means.get("replace"),
        resume_s=means.get("resume"),
        write_s=means.get("checkpoint write"),
    )


def compare(
    scenario: Scenario, learned: LearnedValues, *, percentile_90_s: Mapping[str, float] = EMPTY
) -> PlanAgainstActual:
    """
    Compare the plan with measurements.

    Args:
        scenario: Plan before learning from events.
        percentile_90_s: Expected 90th percentile of each stage in seconds. Default: none
    """
    calibration, books = learned.calibration, learned.ledgers
    rate, stages, strategy = calibration.rate, calibration.stages, scenario.strategy
    wall = sum(book.wall_ns for book in books)
    actual = sum(book.totals_ns["useful"] for book in books) / wall if wall else None
    rows = [
        Comparison(what="goodput", reported_by_jobs=True, plan=goodput(scenario), actual=actual, low=None, high=None),
        Comparison(
            what="failures per instance-hour",
            plan=scenario.failures.per_instance_hour,
            actual=None if rate is None else rate.per_instance_hour,
            low=None if rate is None else rate.low,
            high=None if rate is None else rate.high,
        ),
    ]
    planned = {
        "detect": strategy.detect_s,
        "replace": strategy.replace_s,
        "resume": strategy.resume_s,
        "checkpoint write": scenario.checkpoints.write_s,
        "checkpoint interval": scenario.checkpoints.interval_s,
    }
    for name, plan in planned.items():
        seen = stages.get(name)
        rows.append(
            Comparison(
                what=f"{name}, mean, s",
                reported_by_jobs=name in REPORTED,
                plan=plan,
                actual=None if seen is None else seen.mean_s,
                low=None if seen is None else seen.low_s,
                high=None if seen is None else seen.high_s,
            )
        )
    rows += [
        Comparison(
            what=f"{name}, 90th percentile, s",
            reported_by_jobs=name in REPORTED,
            plan=seconds,
            actual=seen.percentile_90_s,
            low=None,
            high=None,
        )
        for name, seconds in percentile_90_s.items()
        if (seen := stages.get(name)) is not None
    ]
    return PlanAgainstActual(comparisons=tuple(rows), ledgers=books, calibration=calibration)


class _InstanceHours:
    """Hours in service over all instances, from events in time order."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._known: set[str] = set()
        self._total_ns = self._latest_ns = 0

    def add(self, event: Event) -> None:
        since, time_ns, kind = self._since, event.time_ns, event.kind
        self._latest_ns = time_ns
        if event.source == "job" or not (event.node or kind == kinds.CLUSTER_DELETED):
            return
        is_new = event.node not in self._known and kind in _FIRST_WORDS
        self._known.add(event.node)
        if kind in _THERE or is_new:
            since.setdefault(event.node, time_ns)
        elif kind in _GONE:
            self._total_ns += time_ns - since.pop(event.node, time_ns)
        elif kind == kinds.CLUSTER_DELETED:
            self._total_ns += self._running_ns()
            since.clear()

    def total(self) -> float:
        return (self._total_ns + self._running_ns()) / _NS_PER_HOUR

    def _running_ns(self) -> int:
        return sum(self._latest_ns - start for start in self._since.values())


class _CheckpointSeconds:
    """Durations of checkpoints, and of training between two of one attempt."""

    def __init__(self) -> None:
        self._saved_ns: dict[str, int] = {}
        self.seconds = {"checkpoint write": array("d"), "checkpoint interval": array("d")}

    def add(self, event: Event) -> None:
        if event.source != "job":
            return
        if event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED):
            self._saved_ns.pop(event.job, None)
        elif event.kind == kinds.CHECKPOINT_SAVED:
            before_ns = self._saved_ns.get(event.job)
            if event.duration_s is not None and event.duration_s >= 0:
                self.seconds["checkpoint write"].append(event.duration_s)
            if before_ns is not None:
                between = (event.time_ns - before_ns) / 1e9 - (event.duration_s or 0.0)
                self.seconds["checkpoint interval"].append(max(0.0, between))
            self._saved_ns[event.job] = event.time_ns


def _acted_on_ns(incident: Incident) -> int | None:
    noticed_ns = incident.noticed_ns if incident.noticed_ns is not None else incident.injected_ns
    asked_ns = incident.asked_ns
    waited = incident.when == When.BOUNDARY.value and asked_ns is not None
    return max(noticed_ns or 0, asked_ns) if waited and asked_ns is not None else noticed_ns


def _stage_seconds(incidents: Iterable[Incident]) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {"detect": [], "replace": [], "resume": []}
    for incident in incidents:
        if incident.needs_no_repair:
            continue
        if incident.noticed_after_s is not None:
            seconds["detect"].append(incident.noticed_after_s)
        if incident.repaired_with:
            continue  # one repair is one sample
        begun_ns = _acted_on_ns(incident)
        if incident.restored_ns is not None and incident.noticed_ns is not None and begun_ns is not None:
            seconds["replace"].append((incident.restored_ns - begun_ns) / 1e9)
            if incident.resumed_ns is not None and incident.restored_ns <= incident.resumed_ns:
                begun_ns = incident.restored_ns
        if incident.resumed_ns is not None and begun_ns is not None:
            seconds["resume"].append((incident.resumed_ns - begun_ns) / 1e9)
    return seconds


def ledger_total(books: Iterable[Ledger]) -> dict[str, int]:
    total: dict[str, int] = {}
    for account, nanoseconds in itertools.chain.from_iterable(book.totals_ns.items() for book in books):
        total[account] = total.get(account, 0) + nanoseconds
    return total
