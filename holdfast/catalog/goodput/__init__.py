"""Published failure rates, recovery times and prices, for planner and rules. (Not in the top face.)"""

from holdfast.catalog.goodput.failures import FailureRates, ObservedFailures, failure_rates
from holdfast.catalog.goodput.price_list import Price, prices
from holdfast.catalog.goodput.recovery import MeasuredRecovery, RecoveryStages, recovery_stages

__all__ = [
    "FailureRates",
    "MeasuredRecovery",
    "ObservedFailures",
    "Price",
    "RecoveryStages",
    "failure_rates",
    "prices",
    "recovery_stages",
]
