"""
Incidents on one time axis as SVG: step rate of each job, and a bar for each incident.

Drawings are as wide as their place, so that letters keep their size. All text is escaped.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

from holdfast.cli.views.incidents.page.rates import Pace
from holdfast_common import Incident, plain

RATE_HEIGHT, ROW_HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 84, 34, 16, 34, 34, 12
LETTER_PX = 6.2
"""About as wide is a letter of 11 px."""
TICK_PX = 92
MARGIN = 0.02
STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
JOB_COLOURS = 6


@dataclass(frozen=True, kw_only=True)
class Axis:
    start_ns: int
    end_ns: int
    width: float

    def x(self, time_ns: int) -> float:
        share = (min(max(time_ns, self.start_ns), self.end_ns) - self.start_ns) / max(1, self.end_ns - self.start_ns)
        return round(LEFT + share * (self.width - LEFT - RIGHT), 2)


def axis_of(incidents: Sequence[Incident], latest_ns: int, *, width: float) -> Axis:
    """Axis around all incidents, up to the latest event if one is open."""
    first = min(one.start_ns for one in incidents)
    last = max(ending_ns(one, latest_ns) for one in incidents)
    margin = max(500_000_000, round((last - first) * MARGIN))
    return Axis(start_ns=first - 2 * margin, end_ns=last + 2 * margin, width=width)


def ending_ns(incident: Incident, latest_ns: int) -> int:
    """End of a bar: full strength, end without it, or latest event."""
    if incident.is_open:
        return max(latest_ns, incident.start_ns)
    return max(time for time in (incident.end_ns, incident.strong_ns, incident.start_ns) if time is not None)


def drawing(
    incidents: Sequence[Incident],
    paces: Mapping[str, Sequence[Pace]],
    *,
    latest_ns: int,
    width: int,
    title: str,
) -> str:
    axis = axis_of(incidents, latest_ns, width=width)
    on_axis = {job: [one for one in own if _is_on(axis, one)] for job, own in paces.items()}
    shown = {job: own for job, own in on_axis.items() if own}
    top = TOP + (RATE_HEIGHT + 26 if shown else 0)
    height = top + ROW_HEIGHT * len(incidents) + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(plain(title))}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(plain(title))}</title>',
        _time_axis(axis, top=TOP, bottom=height - BOTTOM),
        *(_standstill(one, axis) for one in incidents if shown),
        _rates(shown, list(paces), axis) if shown else "",
        *(_row(one, axis, top=top + ROW_HEIGHT * at, latest_ns=latest_ns) for at, one in enumerate(incidents)),
        "</svg>",
    ]
    return "".join(parts)


def _is_on(axis: Axis, pace: Pace) -> bool:
    return pace.end_ns >= axis.start_ns and pace.start_ns <= axis.end_ns


def _time_axis(axis: Axis, *, top: int, bottom: int) -> str:
    span_s = (axis.end_ns - axis.start_ns) / 1e9
    room = max(2, int((axis.width - LEFT - RIGHT) / TICK_PX))
    step_s = next((one for one in STEPS_S if span_s / one <= room), None)
    if step_s is None:
        step_s = 86_400 * math.ceil(span_s / room / 86_400)
    step_ns = round(step_s * 1e9)
    parts = []
    tick_ns = -(-axis.start_ns // step_ns) * step_ns
    while tick_ns <= axis.end_ns:
        x = axis.x(tick_ns)
        parts.append(f'<path class="rule" d="M{x} {top}V{bottom}"/>')
        # A label at the edge would lie outside.
        if LEFT + 4 <= x <= axis.width - RIGHT - 14:
            parts.append(f'<text class="dim mid" x="{x}" y="{bottom + 14}">{_clock(tick_ns, step_s)}</text>')
        tick_ns += step_ns
    day = datetime.fromtimestamp(axis.start_ns // 10**9, tz=UTC).strftime("%Y-%m-%d, UTC")
    parts.append(f'<text class="dim" x="{LEFT}" y="{bottom + 28}">{day}</text>')
    return "".join(parts)


def _clock(time_ns: int, step_s: float) -> str:
    at = datetime.fromtimestamp(time_ns // 10**9, tz=UTC)
    if step_s >= 86_400:
        return at.strftime("%m-%d")
    if step_s >= 60:
        return at.strftime("%H:%M")
    return at.strftime("%H:%M:%S") + (f".{time_ns // 10**8 % 10}" if step_s < 1 else "")


def _standstill(incident: Incident, axis: Axis) -> str:
    if incident.resumed_ns is None or not incident.stopped_s:
        return ""
    x = axis.x(incident.resumed_ns - round(incident.stopped_s * 1e9))
    wide = max(1.0, round(axis.x(incident.resumed_ns) - x, 2))
    return f'<rect class="still" x="{x}" y="{TOP}" width="{wide}" height="{RATE_HEIGHT}"/>'


def _rates(shown: Mapping[str, Sequence[Pace]], jobs: Sequence[str], axis: Axis) -> str:
    most = max((one.steps_per_s for own in shown.values() for one in own), default=0.0) or 1.0
    base = TOP + RATE_HEIGHT

    def y(rate: float) -> float:
        return round(base - rate / most * (RATE_HEIGHT - 8), 2)

    parts = [
        f'<path class="axis" d="M{LEFT} {base}H{axis.width - RIGHT}"/>',
        f'<text class="dim end" x="{LEFT - 4}" y="{base}">0</text>',
        f'<text class="dim end" x="{LEFT - 4}" y="{y(most) + 4}">{most:.3g}</text>',
        f'<text class="dim" x="{LEFT}" y="{TOP - 5}">steps per second</text>',
    ]
    for job, own in shown.items():
        line = f"M{axis.x(own[0].start_ns)} {y(own[0].steps_per_s)}" + "".join(
            f"V{y(one.steps_per_s)}H{axis.x(one.end_ns)}" for one in own
        )
        area = f"M{axis.x(own[0].start_ns)} {base}" + line.replace("M", "L", 1) + f"V{base}Z"
        colour = f"j{jobs.index(job) % JOB_COLOURS}"
        name = escape(plain(f"job {job}"))
        parts.append(f'<path class="area {colour}" d="{area}"><title>{name}</title></path>')
        parts.append(f'<path class="rate {colour}" d="{line}"/>')
    return "".join(parts)


def _row(incident: Incident, axis: Axis, *, top: int, latest_ns: int) -> str:
    start, end = incident.start_ns, ending_ns(incident, latest_ns)
    marks = [
        ("seen", incident.noticed_ns),
        ("stop", incident.resumed_ns),
        ("weak", incident.strong_ns if incident.strong_ns is not None else incident.restored_ns),
    ]
    y, parts = top + 18, []
    label = f"{incident.id}  {incident.fault or 'fault'}  {incident.host or incident.node}"
    parts.append(f'<text x="{LEFT}" y="{top + 13}">{escape(_fitting(plain(label), axis.width - LEFT - RIGHT))}</text>')
    at = start
    for kind, time_ns in marks:
        if time_ns is not None and time_ns > at:
            parts.append(_bar(kind, axis, at, time_ns, y))
            at = time_ns
    if end > at:
        parts.append(_bar("open" if incident.is_open else "rest", axis, at, end, y))
    x = axis.x(start)
    parts.append(f'<path class="sign" d="M{x} {y - 2}v14"/>')
    if incident.strong_ns is not None:
        parts.append(f'<circle class="strong" cx="{axis.x(incident.strong_ns)}" cy="{y + 5}" r="4"/>')
    return f'<g class="row">{"".join(parts)}</g>'


def _bar(kind: str, axis: Axis, start_ns: int, end_ns: int, y: float) -> str:
    x = axis.x(start_ns)
    wide = max(1.5, round(axis.x(end_ns) - x, 2))
    return f'<rect class="bar {kind}" x="{x}" y="{y}" width="{wide}" height="10"/>'


def _fitting(text: str, width: float) -> str:
    most = max(8, int(width / LETTER_PX))
    return text if len(text) <= most else text[: most - 1] + "…"
