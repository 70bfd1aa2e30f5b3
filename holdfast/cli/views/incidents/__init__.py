"""Incidents as people and programs read them: rows with what they cost, a table, one in detail, and a page."""

from holdfast.cli.views.incidents.costs import LIST_PRICE, Fleet, Price
from holdfast.cli.views.incidents.rows import IncidentRow, chosen, rows_of
from holdfast.cli.views.incidents.tables import incident_detail, incident_figures, incident_table, open_line, steps_of

__all__ = [
    "LIST_PRICE",
    "Fleet",
    "IncidentRow",
    "Price",
    "chosen",
    "incident_detail",
    "incident_figures",
    "incident_table",
    "open_line",
    "rows_of",
    "steps_of",
]
