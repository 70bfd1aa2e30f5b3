"""
What failures will cost a cluster, what to do about it, and what they did cost.

Pure functions over frozen dataclasses: no clock, no files, no AWS. Three models of the same ``Scenario``: first order,
renewal, simulation; docs/planner.md has the formulas and what each assumes.
"""

from holdfast.planner._advice import (
    IntervalAdvice,
    SparesAdvice,
    advise_interval,
    advise_spares,
    best_interval_s,
    daly_interval_s,
    young_interval_s,
)
from holdfast.planner._calibration import (
    Calibration,
    Comparison,
    Known,
    PlanAgainstActual,
    calibrate,
    compare,
    known,
    ledger_total,
)
from holdfast.planner._errors import PlanError
from holdfast.planner._example_run import example_run
from holdfast.planner._first_order import cost_per_failure_h, first_order_goodput, mtbf_h, wall_h
from holdfast.planner._ledger import ACCOUNTS, Ledger, Stretch, ledgers
from holdfast.planner._plan import CURVE_SIZES, Curve, Outlook, Plan, make_plan
from holdfast.planner._published import PublishedFigure, PublishedTable, published_tables
from holdfast.planner._renewal import Shares, goodput, shares
from holdfast.planner._scenario import ASSUMED_WRITE_S, Checkpoints, Failures, Scenario, Strategy
from holdfast.planner._sensitivity import Elasticity, elasticities
from holdfast.planner._shortfalls import Shortfall, shortfalls
from holdfast.planner._simulation import Estimate, Simulation, simulate_wall, simulate_work
from holdfast.planner._spares_cost import SparesCost, cheapest_spares, spares_costs
from holdfast.planner._statistics import RateEstimate, TimeEstimate, estimate_rate, estimate_time
from holdfast.planner._strategies import AssumedRate, assumed_rate, strategy_at
from holdfast.planner._ways import Way, WaysAdvice, advise_ways, best_of, way

__all__ = [
    "ACCOUNTS",
    "ASSUMED_WRITE_S",
    "CURVE_SIZES",
    "AssumedRate",
    "Calibration",
    "Checkpoints",
    "Comparison",
    "Curve",
    "Elasticity",
    "Estimate",
    "Failures",
    "IntervalAdvice",
    "Known",
    "Ledger",
    "Outlook",
    "Plan",
    "PlanAgainstActual",
    "PlanError",
    "PublishedFigure",
    "PublishedTable",
    "RateEstimate",
    "Scenario",
    "Shares",
    "Shortfall",
    "Simulation",
    "SparesAdvice",
    "SparesCost",
    "Strategy",
    "Stretch",
    "TimeEstimate",
    "Way",
    "WaysAdvice",
    "advise_interval",
    "advise_spares",
    "advise_ways",
    "assumed_rate",
    "best_interval_s",
    "best_of",
    "calibrate",
    "cheapest_spares",
    "compare",
    "cost_per_failure_h",
    "daly_interval_s",
    "elasticities",
    "estimate_rate",
    "estimate_time",
    "example_run",
    "first_order_goodput",
    "goodput",
    "known",
    "ledger_total",
    "ledgers",
    "make_plan",
    "mtbf_h",
    "published_tables",
    "shares",
    "shortfalls",
    "simulate_wall",
    "simulate_work",
    "spares_costs",
    "strategy_at",
    "wall_h",
    "way",
    "young_interval_s",
]
