from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.catalog.goodput import FailureRates, Price, RecoveryStages, failure_rates, prices, recovery_stages


@dataclass(frozen=True, kw_only=True)
class Data:
    """Failure rates, recovery times and prices, each read only if the plan needs it. Default: those of the catalog."""

    rates: Callable[[], FailureRates] = failure_rates
    stages: Callable[[], Mapping[str, RecoveryStages]] = recovery_stages
    prices: Callable[[], tuple[Price, ...]] = prices


CATALOG = Data()
