"""
Page of incidents. Anyone on a node can write evidence: all texts of others are escaped, and the page's policy forbids
scripts and loading.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path

from holdfast.cli.views.incidents import (
    Fleet,
    IncidentRow,
    marked,
    reported_note,
    reported_text,
    steps_of,
    steps_text,
    took_text,
)
from holdfast.cli.views.incidents.page.drawing import JOB_COLOURS, drawing
from holdfast.cli.views.incidents.page.rates import Pace, read
from holdfast.cli.views.incidents.page.style import OWN, colours, picture_colours
from holdfast.cli.views.incidents.words import moment, seconds, text_or
from holdfast.cli.views.pages import STYLE
from holdfast_common import Event, Incident, State, plain

MARK = "<!doctype html>\n<!-- incidents, written by holdfast -->\n"
PICTURE_MARK = "<!-- incidents, written by holdfast -->\n"
"""What a page and a picture begin with; other files are left alone."""
TITLE = "incidents and step rate over time"
PICTURE_STYLE = "svg { background: var(--card); font-family: system-ui, sans-serif; }"
WIDE, NARROW, ZOOMED = 1000, 360, 940
_BAD = (State.OPEN.value, State.REFUSED.value, State.UNNOTICED.value)


def is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)).startswith((MARK.encode(), PICTURE_MARK.encode()))


def picture(incidents: Sequence[Incident], events: Iterable[Event]) -> str:
    """Time axis as an SVG file with its colours."""
    log = read(events)
    drawn = drawing(incidents, log.paces, latest_ns=log.latest_ns, width=WIDE, title=TITLE)
    head, rest = drawn.split(">", 1)
    return f"{PICTURE_MARK}{head}><style>{picture_colours()}{PICTURE_STYLE}</style>{rest}\n"


def page(
    found: Sequence[tuple[Incident, IncidentRow]],
    events: Iterable[Event],
    fleet: Fleet,
    *,
    made_at: datetime,
    version: str,
) -> str:
    """Page; equal arguments give equal pages."""
    style = f"{colours()}{STYLE}{OWN}"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    log = read(events)
    clusters = sorted(plain(cluster) for cluster in log.clusters)
    title = f"Incidents of {', '.join(clusters)}" if clusters else "Incidents"
    pace, latest_ns = log.paces, log.latest_ns
    incidents = [incident for incident, _ in found]
    overview = _overview(incidents, pace, latest_ns) if incidents else "<section><p>No incidents.</p></section>"
    each = "".join(_incident(one, row, pace, latest_ns, alone=len(found) == 1) for one, row in found)
    return f"""{MARK}<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="dim">{made_at:%Y-%m-%d %H:%M} UTC, Holdfast {escape(version)}, from {log.count:,} events alone</p>
<p>{_headline(incidents)}</p>
{overview}
<section><h2>One by one</h2>{each or "<p>None.</p>"}</section>
{_notes(found, fleet)}
</body>
</html>
"""


def _headline(incidents: Sequence[Incident]) -> str:
    going_on = sum(one.is_open for one in incidents)
    return f"{len(incidents):,} incident{'' if len(incidents) == 1 else 's'}, {going_on or 'none'} of them open."


def _overview(incidents: Sequence[Incident], pace: dict[str, tuple[Pace, ...]], latest_ns: int) -> str:
    return f"<figure><h2>On one time axis</h2>{_drawings(incidents, pace, latest_ns, WIDE)}{_keys(pace)}</figure>"


def _drawings(incidents: Sequence[Incident], pace: dict[str, tuple[Pace, ...]], latest_ns: int, width: int) -> str:
    wide = drawing(incidents, pace, latest_ns=latest_ns, width=width, title=TITLE)
    narrow = drawing(incidents, pace, latest_ns=latest_ns, width=NARROW, title=TITLE)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _keys(pace: dict[str, tuple[Pace, ...]]) -> str:
    fixed = (
        ("seen", "until the verdict"),
        ("stop", "until training resumes"),
        ("weak", "until full strength"),
        ("strong", "full strength"),
        ("open", "still open"),
        ("still", "the job is stopped"),
    )
    jobs = [(f"j{at % JOB_COLOURS}", f"job {job}") for at, job in enumerate(pace)]
    keys = "".join(
        f'<span class="key"><i class="{name}"></i>{escape(plain(what))}</span>' for name, what in (*fixed, *jobs)
    )
    return f"<figcaption>{keys}</figcaption>"


def _incident(
    incident: Incident, row: IncidentRow, pace: dict[str, tuple[Pace, ...]], latest_ns: int, *, alone: bool
) -> str:
    kind = "bad" if row.state in _BAD else "good" if row.state == State.REPAIRED.value else "other"
    end_ns = max(latest_ns if incident.is_open else incident.end_ns or 0, incident.start_ns)
    zoom = "" if alone else _drawings([incident], pace, end_ns, ZOOMED)
    where = " ".join(f'<span class="one">{escape(plain(one))}</span>' for one in (row.host, row.node) if one)
    after = row.training_again_s
    short = f", resumed after {marked(seconds(after), row, 'training_again_s')}" if after is not None else ""
    facts = [
        ("began", f"{moment(row.started_ns)} UTC"),
        ("due", text_or(row.when)),
        ("job", marked(text_or(row.job), row, "job")),
        ("replaced by", text_or(row.replacement)),
        ("steps", steps_text(row)),
        ("took", took_text(row)),
        *([("", reported_text(row))] if row.job else []),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    lines = "".join(
        f"<li><span>+{line.time_s:.1f} s {escape(plain(line.source))}</span>{escape(plain(line.text))}</li>"
        for line in row.evidence
    )
    evidence = (
        f"<details{' open' if alone else ''}><summary>evidence, {len(row.evidence):,} "
        f'line{"" if len(row.evidence) == 1 else "s"}</summary><ol class="lines">{lines}</ol></details>'
        if lines
        else '<p class="dim">No evidence.</p>'
    )
    return (
        f"<details{' open' if alone else ''}><summary><b>{escape(text_or(row.fault))}</b>"
        f'<span class="state {kind}">{row.state}</span> {where}{short} '
        f'<span class="dim"><span class="one">{moment(row.started_ns)}</span> {escape(plain(row.id))}</span></summary>'
        f'<div class="body">{zoom}<dl>{listed}</dl>{_steps(row)}{evidence}</div></details>'
    )


def _steps(row: IncidentRow) -> str:
    body = "".join(f"<li><span>{seconds(after)}</span>{escape(what)}</li>" for after, what in steps_of(row))
    return f'<ol class="steps">{body}</ol>' if body else ""


def _notes(found: Sequence[tuple[Incident, IncidentRow]], fleet: Fleet) -> str:
    notes = ["Seconds count from the start of each incident. Values that no event has are shown as -."]
    if any(row.cost_usd is not None for _, row in found):
        notes.append(f"Price of {fleet.price.note}.")
    if remark := reported_note([row for _, row in found]):
        notes.append(f"{remark[0].upper()}{remark[1:]}.")
    listed = "".join(f"<li>{escape(plain(note))}</li>" for note in notes)
    return f"<section><h2>Read as</h2><ul>{listed}</ul></section>"
