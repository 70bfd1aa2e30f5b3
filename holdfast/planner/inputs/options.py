"""What is asked for, and where the data of a plan come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.catalog.goodput import FailureRates, Price, RecoveryStages, failure_rates, prices, recovery_stages


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user gave; None where nothing. What a name or a path stands for is read by the caller."""

    environment: str | None = None
    group: str | None = None
    instances: int | None = None
    instance_type: str | None = None
    spares: int | None = None
    gpu_hours: float | None = None
    failure_rate_percent: float | None = None
    group_size: int = 1
    group_share_percent: float = 0.0
    strategy: str = "checkpoints"
    checkpoint_interval_s: float | None = None
    checkpoint_write_s: float | None = None
    detect_s: float | None = None
    replace_s: float | None = None
    resume_s: float | None = None
    target_percent: float | None = None
    deadline_days: float | None = None
    budget_usd: float | None = None
    price: str | None = None
    training_plan_fee_usd: float | None = None
    training_plan_instance_hours: float | None = None
    rates_file: Path | None = None
    stages_file: Path | None = None
    prices_file: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Data:
    """Failure rates, recovery times and prices, each read only if the plan needs it. Default: those of the catalog."""

    rates: Callable[[], FailureRates] = failure_rates
    stages: Callable[[], Mapping[str, RecoveryStages]] = recovery_stages
    prices: Callable[[], tuple[Price, ...]] = prices


CATALOG = Data()
