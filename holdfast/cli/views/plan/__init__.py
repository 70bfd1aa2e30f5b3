"""A plan in the terminal. Loads the planner."""

from holdfast.cli.views.plan.tables import (
    COST_COLUMNS,
    GOODPUT_COLUMNS,
    advice,
    comparison_rows,
    cost_cells,
    days,
    goodput_cells,
    headline,
    ledger_rows,
    percent,
    render_plan,
    render_published,
    signed,
)

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
    "render_plan",
    "render_published",
    "signed",
]
