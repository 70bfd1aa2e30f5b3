"""Events of the page. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.cli.console.state import REPORTS
from holdfast.cli.views import BAD_KINDS, event_facts
from holdfast_common import Event, plain

LONGEST = 600
"""Characters of a row's text."""
EventRow = list[str | float | int]
"""Number, milliseconds, source, node, kind, job, text, level, host."""
_IN_COLUMNS = frozenset(("host", "group", "nodes", "signal_ns"))
"""Details that are columns, or too long for a line."""


def event_rows(found: Iterable[tuple[int, Event]]) -> list[EventRow]:
    return [_row(number, event) for number, event in found]


def _row(number: int, event: Event) -> EventRow:
    detail = {name: value for name, value in event.detail.items() if name not in _IN_COLUMNS and value != ""}
    text = " · ".join(event_facts(replace(event, detail=detail, job="")))
    level = "bad" if event.kind in BAD_KINDS else "report" if event.kind in REPORTS else ""
    return [
        number,
        round(event.time_ns / 1e6, 1),
        plain(event.source),
        plain(event.node),
        plain(event.kind),
        plain(event.job),
        text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…",
        level,
        plain(str(event.detail.get("host", ""))),
    ]
