"""
Cost of failures of a cluster, advice, and comparison with measured events.

Pure functions over frozen dataclasses: no clock, no files, no AWS. Three models of one ``Scenario``: first order,
renewal, simulation; docs/do/planner.md has their formulas and assumptions.
"""

from holdfast.planner.actual import (
    ACCOUNTS,
    PlanAgainstActual,
    Stretch,
    calibrate,
    example_run,
    learn,
    ledger_total,
    ledgers,
)
from holdfast.planner.advice import (
    Elasticity,
    Way,
    best_interval_s,
    cheapest_spares,
    shortfalls,
    spares_costs,
)
from holdfast.planner.layouts import (
    Copies,
    LayoutPlan,
    figures,
    hardware_of,
    layout_of,
    parameters_of,
    plan_layout,
)
from holdfast.planner.model import (
    ASSUMED_WRITE_S,
    Checkpoints,
    Estimate,
    Failures,
    PlanError,
    Scenario,
    Shares,
    Strategy,
    assumed_rate,
    estimate_time,
    first_order_goodput,
    goodput,
    shares,
    simulate_work,
    strategy_at,
)
from holdfast.planner.plans import (
    CURVE_SIZES,
    Outlook,
    Plan,
)

__all__ = [
    "ACCOUNTS",
    "ASSUMED_WRITE_S",
    "CURVE_SIZES",
    "Checkpoints",
    "Copies",
    "Elasticity",
    "Estimate",
    "Failures",
    "LayoutPlan",
    "Outlook",
    "Plan",
    "PlanAgainstActual",
    "PlanError",
    "Scenario",
    "Shares",
    "Strategy",
    "Stretch",
    "Way",
    "assumed_rate",
    "best_interval_s",
    "calibrate",
    "cheapest_spares",
    "estimate_time",
    "example_run",
    "figures",
    "first_order_goodput",
    "goodput",
    "hardware_of",
    "layout_of",
    "learn",
    "ledger_total",
    "ledgers",
    "parameters_of",
    "plan_layout",
    "shares",
    "shortfalls",
    "simulate_work",
    "spares_costs",
    "strategy_at",
]
