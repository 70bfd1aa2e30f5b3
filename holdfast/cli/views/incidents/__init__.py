"""Incidents with their cost: rows, tables, details, and a page."""

from holdfast.cli.views.incidents.costs import LIST_PRICE, Fleet, Price
from holdfast.cli.views.incidents.rows import Clock, IncidentRow, chosen, rows_of
from holdfast.cli.views.incidents.tables import (
    incident_detail,
    incident_figures,
    incident_table,
    marked,
    open_line,
    reported_note,
    reported_text,
    steps_of,
    steps_text,
    took_text,
)

__all__ = [
    "LIST_PRICE",
    "Clock",
    "Fleet",
    "IncidentRow",
    "Price",
    "chosen",
    "incident_detail",
    "incident_figures",
    "incident_table",
    "marked",
    "open_line",
    "reported_note",
    "reported_text",
    "rows_of",
    "steps_of",
    "steps_text",
    "took_text",
]
