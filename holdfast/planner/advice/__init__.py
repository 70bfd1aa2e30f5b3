"""Advice: checkpoint interval, spares, recovery strategy, and their sensitivities."""

from holdfast.planner.advice.checkpoints_and_spares import (
    IntervalAdvice,
    SparesAdvice,
    advise_interval,
    advise_spares,
    best_interval_s,
    daly_interval_s,
    lost_per_work,
    young_interval_s,
)
from holdfast.planner.advice.sensitivity import Elasticity, elasticities
from holdfast.planner.advice.shortfall import Shortfall, shortfalls
from holdfast.planner.advice.spares_cost import SparesCost, cheapest_spares, spares_costs
from holdfast.planner.advice.ways import Way, WaysAdvice, advise_ways, best_of, way

__all__ = [
    "Elasticity",
    "IntervalAdvice",
    "Shortfall",
    "SparesAdvice",
    "SparesCost",
    "Way",
    "WaysAdvice",
    "advise_interval",
    "advise_spares",
    "advise_ways",
    "best_interval_s",
    "best_of",
    "cheapest_spares",
    "daly_interval_s",
    "elasticities",
    "lost_per_work",
    "shortfalls",
    "spares_costs",
    "way",
    "young_interval_s",
]
