"""Advice: checkpoint interval, spares, recovery strategy, and their sensitivities."""

from holdfast.planner.advice.checkpoints_and_spares import (
    IntervalAdvice,
    SparesAdvice,
    advise_interval,
    advise_spares,
    best_interval_s,
    lost_per_work,
)
from holdfast.planner.advice.sensitivity import Elasticity, elasticities
from holdfast.planner.advice.shortfall import shortfalls
from holdfast.planner.advice.spares_cost import SparesCost, cheapest_spares, spares_costs
from holdfast.planner.advice.ways import Way, WaysAdvice, advise_ways, way

__all__ = [
    "Elasticity",
    "IntervalAdvice",
    "SparesAdvice",
    "SparesCost",
    "Way",
    "WaysAdvice",
    "advise_interval",
    "advise_spares",
    "advise_ways",
    "best_interval_s",
    "cheapest_spares",
    "elasticities",
    "lost_per_work",
    "shortfalls",
    "spares_costs",
    "way",
]
