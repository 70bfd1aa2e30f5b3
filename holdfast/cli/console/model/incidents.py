"""Incidents of the page, as bars with facts, steps and evidence. Pure."""

from collections.abc import Sequence
from typing import Any

from holdfast.cli.console.model.numbers import milliseconds, rounded
from holdfast.cli.views.incidents import (
    IncidentRow,
    marked,
    moment,
    reported_text,
    seconds,
    steps_of,
    steps_text,
    text_or,
    took_text,
)
from holdfast_common import Incident, State, plain

Json = dict[str, Any]
MOST = 200
MOST_EVIDENCE = 40
_BAD = frozenset((State.OPEN.value, State.REFUSED.value, State.UNNOTICED.value))
_GOING_ON = frozenset((State.WAITING.value, State.REPAIRING.value))


def incidents_of(found: Sequence[tuple[Incident, IncidentRow]], *, most: int = MOST) -> Json:
    """The newest incidents, oldest first, and how many there are."""
    shown = found[-most:]
    return {
        "total": len(found),
        "open": sum(incident.is_open for incident, _ in found),
        "rows": [incident_of(incident, row) for incident, row in shown],
    }


def incident_of(incident: Incident, row: IncidentRow) -> Json:
    return {
        "id": plain(row.id),
        "fault": text_or(row.fault),
        "host": plain(row.host or row.node or (f"job {row.job}" if row.job else "")),
        "node": plain(row.node or ""),
        "job": plain(incident.job),
        "state": row.state,
        "level": "bad" if row.state in _BAD else "warn" if row.state in _GOING_ON else "good",
        "open": incident.is_open,
        "start": milliseconds(incident.start_ns),
        "noticed": milliseconds(incident.noticed_ns),
        "resumed": milliseconds(incident.resumed_ns),
        "stopped_s": rounded(incident.stopped_s),
        "strong": milliseconds(incident.strong_ns),
        "restored": milliseconds(incident.restored_ns),
        "end": milliseconds(incident.end_ns),
        "resumed_after": seconds(row.training_again_s) if row.training_again_s is not None else "",
        "strong_after": seconds(row.at_strength_s) if row.at_strength_s is not None else "",
        "facts": _facts(row),
        "steps": [[seconds(after), what] for after, what in steps_of(row)],
        "evidence": [
            [f"+{line.time_s:.1f} s", plain(line.source), plain(line.text)] for line in row.evidence[:MOST_EVIDENCE]
        ],
        "evidence_total": len(row.evidence),
    }


def _facts(row: IncidentRow) -> list[list[str]]:
    facts = [
        ["began", f"{moment(row.started_ns)} UTC"],
        ["node", "  ".join(plain(one) for one in (row.host, row.node) if one)],
        ["due", text_or(row.when) if row.when else ""],
        ["job", marked(text_or(row.job), row, "job") if row.job else ""],
        ["replaced by", text_or(row.replacement) if row.replacement else ""],
        ["steps", steps_text(row) if row.steps_lost is not None else ""],
        ["took", took_text(row) if row.gpu_hours is not None or row.cost_usd is not None else ""],
        ["rest of the job", reported_text(row) if row.reported_gpu_hours is not None else ""],
    ]
    return [fact for fact in facts if fact[1]]
