"""Plans on a terminal. Loads the planner."""

from holdfast.cli.views.plan.layouts import render_layout
from holdfast.cli.views.plan.tables import (
    COST_COLUMNS,
    GOODPUT_COLUMNS,
    advice,
    comparison_rows,
    cost_cells,
    goodput_cells,
    headline,
    ledger_rows,
    render_plan,
    signed,
)
from holdfast.cli.views.plan.words import days, percent

__all__ = [
    "COST_COLUMNS",
    "GOODPUT_COLUMNS",
    "advice",
    "comparison_rows",
    "cost_cells",
    "days",
    "goodput_cells",
    "headline",
    "ledger_rows",
    "percent",
    "render_layout",
    "render_plan",
    "signed",
]
