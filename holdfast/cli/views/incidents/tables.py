"""Incidents on a terminal: table, details, and open ones in a line."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.deployed import IncidentView
from holdfast.cli.views.incidents.rows import IncidentRow
from holdfast.cli.views.incidents.words import count, dollars, moment, number, seconds, text_or
from holdfast.cli.views.layout import Column, Facts, Fitted
from holdfast_common import State, plain

COLOURS = {
    State.UNNOTICED: "yellow",
    State.OPEN: "bold red",
    State.WAITING: "yellow",
    State.REFUSED: "bold red",
    State.REPAIRING: "yellow",
    State.REPAIRED: "green",
    State.NOTED: "dim",
    State.WITHDRAWN: "dim",
    State.REMOVED: "dim",
}
IN_A_LINE = 3
_COLUMNS = {
    "training_again_s": "training", "at_strength_s": "strength", "steps_lost": "lost", "steps_redone": "redone",
    "job": "job",
}  # fmt: skip
REPORTED = "reported by the job"
"""Mark of values that only the log of a job has."""


def state_text(state: str) -> Text:
    return Text(state, style=COLOURS[State(state)])


def place(row: IncidentRow) -> str:
    """Host name if known, else instance id."""
    return text_or(row.host or row.node)


def incident_table(rows: Sequence[IncidentRow]) -> Fitted:
    right = ("signal", "verdict", "training", "replaced", "strength", "lost", "redone", "GPU-h", "cost")
    names = ("incident", "began", "host", "fault", "state", *right, "job")
    return Fitted(
        [Column(name, "right" if name in right else "left") for name in names],
        [
            [
                plain(row.id),
                moment(row.started_ns)[5:],
                place(row),
                text_or(row.fault),
                state_text(row.state),
                seconds(row.signal_s),
                seconds(row.verdict_s),
                seconds(row.training_again_s),
                seconds(row.replaced_s),
                seconds(row.at_strength_s),
                count(row.steps_lost),
                count(row.steps_redone),
                number(row.gpu_hours, digits=3),
                dollars(row.cost_usd),
                text_or(row.job),
            ]
            for row in rows
        ],
    )


def reported_note(rows: Sequence[IncidentRow]) -> str:
    """Columns that come from job reports; empty if none does."""
    names = dict.fromkeys(_COLUMNS[name] for row in rows for name in row.reported_by_job if name in _COLUMNS)
    return f"{', '.join(names)}: {REPORTED}, counted in no price" if names else ""


def incident_detail(row: IncidentRow, *, price_note: str = "") -> RenderableType:
    facts: list[tuple[str, str | Text]] = [
        ("incident", Text.assemble(plain(row.id), "  ", state_text(row.state))),
        ("began", f"{moment(row.started_ns)} UTC"),
        ("fault", text_or(row.fault) + (f", due {plain(row.when)}" if row.when else "")),
        ("node", "  ".join(plain(one) for one in (row.host, row.node) if one) or text_or(None)),
        ("replaced by", text_or(row.replacement)),
        ("job", marked(text_or(row.job), row, "job")),
        ("steps", steps_text(row)),
        ("took", took_text(row)),
        *([("", reported_text(row))] if "reported_gpu_hours" in row.reported_by_job else []),
    ]
    if row.cost_usd is not None and price_note:
        facts.append(("", Text(price_note, style="dim")))
    parts: list[RenderableType] = [Facts(facts), "", Text("steps", style="bold"), _steps(row)]
    if row.evidence:
        parts += ["", Text("evidence", style="bold")]
        parts.append(Facts([(f"+{line.time_s:.1f} s {plain(line.source)}", plain(line.text)) for line in row.evidence]))
    return Group(*parts)


def incident_figures(row: IncidentRow) -> Table:
    """Figures of an incident, unknown ones included."""
    table = Table.grid(padding=(0, 2))
    where = f"{text_or(row.fault)} on {place(row)}"
    table.add_row(
        Text(f"incident {plain(row.id)}", style="bold red"), Text.assemble(where, "  ", state_text(row.state))
    )
    figures = (
        ("first sign", row.signal_s, "signal_s"),
        ("verdict", row.verdict_s, "verdict_s"),
        (
            f"job {plain(row.job)} resumes" if row.job else "training resumes",
            row.training_again_s,
            "training_again_s",
        ),
        (f"replaced by {plain(row.replacement)}" if row.replacement else "node back", row.replaced_s, "replaced_s"),
        ("full strength", row.at_strength_s, "at_strength_s"),
    )
    for name, after, field in figures:
        known = "not known" if after is None else marked(f"after {seconds(after)}", row, field)
        table.add_row(f"  {name}", known)
    table.add_row("  steps", steps_text(row))
    if row.gpu_hours is not None:
        table.add_row("  took", f"{took_text(row)} at list price")
    if row.reported_gpu_hours is not None and "reported_gpu_hours" in row.reported_by_job:
        table.add_row("", reported_text(row))
    return table


def marked(text: str, row: IncidentRow, *fields: str) -> str:
    return f"{text} ({REPORTED})" if set(fields) & set(row.reported_by_job) else text


def steps_text(row: IncidentRow) -> str:
    text = f"{count(row.steps_lost)} lost, {count(row.steps_redone)} of them redone"
    return marked(text, row, "steps_lost", "steps_redone")


def took_text(row: IncidentRow) -> str:
    return f"{number(row.gpu_hours, digits=3)} GPU-hours, {dollars(row.cost_usd)}"


def reported_text(row: IncidentRow) -> str:
    took = f"{number(row.reported_gpu_hours, digits=3)} GPU-hours, {dollars(row.reported_cost_usd)}"
    return f"the rest of the job: {took} ({REPORTED})"


def _steps(row: IncidentRow) -> Fitted:
    return Fitted(
        [Column("after", "right"), Column("what")],
        [[seconds(after), what] for after, what in steps_of(row)],
    )


def steps_of(row: IncidentRow) -> list[tuple[float, str]]:
    known = [
        (row.signal_s, "first sign"),
        (row.verdict_s, "verdict"),
        (row.training_again_s, marked(f"job {text_or(row.job)} resumes", row, "training_again_s")),
        (row.replaced_s, f"{text_or(row.replacement)} replaces it" if row.replacement else "node in service again"),
        (row.at_strength_s, marked("full strength", row, "at_strength_s")),
    ]
    asked = [
        (
            step.time_s,
            " ".join(plain(word) for word in (step.remedy, step.way and f"by {step.way}") if word)
            + f": {step.outcome}",
        )
        for step in row.remedies
    ]
    return sorted([(after, what) for after, what in known if after is not None] + asked, key=lambda one: one[0])


def open_line(going_on: Sequence[IncidentView]) -> Text | None:
    """Open incidents in a line; None without any."""
    if not going_on:
        return None
    named = [
        f"{plain(one.fault or 'fault')} on {plain(one.host or one.node)} ({one.state}, {plain(one.id)})"
        for one in going_on[-IN_A_LINE:]
    ]
    more = "" if len(going_on) <= IN_A_LINE else f"; {len(going_on) - IN_A_LINE} more"
    return Text(f"{len(going_on)} open: {'; '.join(named)}{more}", style="yellow")
