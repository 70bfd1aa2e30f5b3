"""Incidents with their cost: rows, tables, details, and a page."""

from holdfast.cli.views.incidents.costs import LIST_PRICE, Fleet, Price
from holdfast.cli.views.incidents.rows import Clock, IncidentRow, chosen, rows_in, rows_of
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
from holdfast.cli.views.incidents.words import moment, seconds, text_or

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
    "moment",
    "open_line",
    "reported_note",
    "reported_text",
    "rows_in",
    "rows_of",
    "seconds",
    "steps_of",
    "steps_text",
    "text_or",
    "took_text",
]
