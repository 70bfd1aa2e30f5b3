"""Row of an incident, with the fields of ``holdfast incidents --json``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.cli.terminal import CommandError
from holdfast.cli.views.incidents.costs import Fleet, Hours, cost_usd, gpu_hours, hours_of
from holdfast_common import Event, Incident, IncidentReader, Sighting, Stall, in_order

SHORTEST_PREFIX = 3
_FIELDS = {"resumed_ns": "training_again_s", "strong_ns": "at_strength_s"}
"""Fields of a row that are made of one of an incident with another name."""
SHOWN_IDS = 10


@dataclass(frozen=True, kw_only=True)
class RemedyRow:
    time_s: float
    remedy: str | None
    way: str | None
    outcome: str


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    time_s: float
    source: str
    text: str


@dataclass(frozen=True, kw_only=True)
class IncidentRow:
    """Incident. Seconds count from its start; unknown values are None."""

    id: str
    node: str | None
    host: str | None
    fault: str | None
    state: str
    when: str | None
    started_ns: int
    signal_s: float | None
    verdict_s: float | None
    training_again_s: float | None
    replaced_s: float | None
    at_strength_s: float | None
    steps_lost: int | None
    steps_redone: int | None
    gpu_hours: float | None
    cost_usd: float | None
    reported_gpu_hours: float | None
    reported_cost_usd: float | None
    job: str | None
    replacement: str | None
    repaired_with: str | None
    remedies: tuple[RemedyRow, ...]
    evidence: tuple[EvidenceRow, ...]
    reported_by_job: tuple[str, ...]
    """Fields from the log of a job alone, which every user of a node can write."""


STALL = "job-stall"
"""Fault of an incident that only a job reports: it stands still."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time, and jobs that run, for stalls that no launcher has reported yet."""

    now_ns: int = 0
    runs: Callable[[str], bool] = lambda _job: False


def rows_of(
    events: Iterable[Event], fleet: Fleet, *, stalls: Clock | None = None
) -> list[tuple[Incident, IncidentRow]]:
    """Incidents with their rows; ``stalls``: also those that jobs report. Default: none of these."""
    reader = IncidentReader()
    for event in in_order(events):
        reader.add(event)
    return rows_in(reader, fleet, stalls=stalls)


def rows_in(reader: IncidentReader, fleet: Fleet, *, stalls: Clock | None = None) -> list[tuple[Incident, IncidentRow]]:
    known = fleet.with_groups_of(reader.groups)
    found = reader.incidents()
    rows = [(incident, _row_of(incident, hours, known)) for incident, hours in zip(found, hours_of(found), strict=True)]
    if stalls is not None:
        apart = [one for one in reader.stalls(now_ns=stalls.now_ns, runs=stalls.runs) if not _is_known(one, found)]
        rows += [_stall_row(one, known, now_ns=stalls.now_ns) for one in apart]
    return sorted(rows, key=lambda one: (one[0].start_ns, one[0].id))


def _is_known(stall: Stall, incidents: Sequence[Incident]) -> bool:
    """Return True if an incident of a node has the same standstill."""
    return any(
        incident.job == stall.job
        and incident.start_ns <= (stall.end_ns or incident.start_ns)
        and (incident.end_ns is None or incident.end_ns >= stall.start_ns)
        for incident in incidents
    )


def _stall_row(stall: Stall, fleet: Fleet, *, now_ns: int) -> tuple[Incident, IncidentRow]:
    incident = Incident(
        id=stall.id,
        node="",
        fault=STALL,
        names=(stall.id,),
        severity="process",
        signalled_ns=stall.start_ns,
        noticed_ns=stall.noticed_ns or max(now_ns, stall.start_ns),
        withdrawn_ns=stall.end_ns,
        job=stall.job,
        resumed_ns=stall.resumed_ns,
        evidence=(
            Sighting(stall.start_ns, "job", f"step {stall.step} was the last one; see: holdfast why {stall.job}"),
            *([Sighting(stall.end_ns or stall.start_ns, "job", stall.evidence)] if stall.evidence else []),
        ),
    )
    row = _row_of(incident, Hours(own=None, reported=None), fleet)
    return incident, replace(row, reported_by_job=("fault", "started_ns", "verdict_s", *row.reported_by_job))


def _row_of(incident: Incident, hours: Hours, fleet: Fleet) -> IncidentRow:
    return IncidentRow(
        id=incident.id,
        node=incident.node or None,
        host=incident.host or None,
        fault=incident.fault or None,
        state=incident.state.value,
        when=incident.when or None,
        started_ns=incident.start_ns,
        signal_s=incident.signal_s,
        verdict_s=incident.noticed_after_s,
        training_again_s=incident.resumed_after_s,
        replaced_s=incident.restored_after_s,
        at_strength_s=incident.at_strength_after_s,
        steps_lost=incident.steps_lost,
        steps_redone=incident.steps_redone,
        gpu_hours=gpu_hours(hours.own, fleet),
        cost_usd=cost_usd(hours.own, fleet),
        reported_gpu_hours=gpu_hours(hours.reported, fleet),
        reported_cost_usd=cost_usd(hours.reported, fleet),
        job=incident.job or incident.slurm_jobs or None,
        replacement=incident.replacement or None,
        repaired_with=incident.repaired_with or None,
        remedies=tuple(
            RemedyRow(
                time_s=incident.after_s(step.time_ns),
                remedy=step.remedy or None,
                way=step.way or None,
                outcome=step.outcome,
            )
            for step in incident.remedies
        ),
        evidence=tuple(
            EvidenceRow(time_s=incident.after_s(line.time_ns), source=line.source, text=line.text)
            for line in incident.evidence
        ),
        reported_by_job=_reported(incident),
    )


def _reported(incident: Incident) -> tuple[str, ...]:
    names = {**{name: name for name in ("steps_lost", "steps_redone", "job")}, **_FIELDS}
    of_job = [names[name] for name in incident.reported_by_job if name in names]
    return (*of_job, "reported_gpu_hours", "reported_cost_usd") if incident.job else tuple(of_job)


def chosen(
    found: Sequence[tuple[Incident, IncidentRow]], prefix: str, *, none: str
) -> list[tuple[Incident, IncidentRow]]:
    """Incidents with this id, former id, or beginning of an id. Raises: CommandError: no match, or several."""
    exact = [one for one in found if prefix in one[0].names]
    if exact:
        return exact
    begun = [one for one in found if any(name.startswith(prefix) for name in one[0].names)]
    if len(begun) == 1 and len(prefix) >= SHORTEST_PREFIX:
        return begun
    if begun:
        ids = ", ".join(row.id for _, row in begun[:SHOWN_IDS])
        raise CommandError(f"got {prefix!r}, which begins the ids {ids}; give one of them")
    if not found:
        raise CommandError(f"there is no incident {prefix!r}, nor any other; {none}")
    ids = ", ".join(row.id for _, row in found[-SHOWN_IDS:])
    raise CommandError(f"there is no incident {prefix!r}; the newest: {ids}; all: holdfast incidents")
