"""Failure rates, recovery times, prices and figures of layouts, for planner and rules. (Not in the top face.)"""

from holdfast.catalog.goodput.failures import FailureRates, ObservedFailures, failure_rates
from holdfast.catalog.goodput.layout_facts import (
    LayoutFacts,
    PublishedRecovery,
    RecoveryTerm,
    Sourced,
    layout_facts,
)
from holdfast.catalog.goodput.price_list import Price, StandingPrices, prices, standing_prices
from holdfast.catalog.goodput.recovery import MeasuredRecovery, RecoveryStages, recovery_stages

__all__ = [
    "FailureRates",
    "LayoutFacts",
    "MeasuredRecovery",
    "ObservedFailures",
    "Price",
    "PublishedRecovery",
    "RecoveryStages",
    "RecoveryTerm",
    "Sourced",
    "StandingPrices",
    "failure_rates",
    "layout_facts",
    "prices",
    "recovery_stages",
    "standing_prices",
]
