"""Scenarios, statistics, strategies, and three models of the cost of failures."""

from holdfast.planner.model.errors import PlanError, check_target, require
from holdfast.planner.model.first_order import first_order_goodput
from holdfast.planner.model.renewal import Shares, goodput, shares
from holdfast.planner.model.scenario import ASSUMED_WRITE_S, HOUR_S, Checkpoints, Failures, Scenario, Strategy
from holdfast.planner.model.simulation import Estimate, Simulation, affordable_runs, simulate_work
from holdfast.planner.model.statistics import RateEstimate, TimeEstimate, estimate_rate, estimate_time
from holdfast.planner.model.strategies import assumed_rate, strategy_at

__all__ = [
    "ASSUMED_WRITE_S",
    "HOUR_S",
    "Checkpoints",
    "Estimate",
    "Failures",
    "PlanError",
    "RateEstimate",
    "Scenario",
    "Shares",
    "Simulation",
    "Strategy",
    "TimeEstimate",
    "affordable_runs",
    "assumed_rate",
    "check_target",
    "estimate_rate",
    "estimate_time",
    "first_order_goodput",
    "goodput",
    "require",
    "shares",
    "simulate_work",
    "strategy_at",
]
