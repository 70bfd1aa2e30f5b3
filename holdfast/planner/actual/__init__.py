"""What failures did cost, from events, and beside it what was planned."""

from holdfast.planner.actual.calibration import (
    Calibration,
    Comparison,
    Known,
    PlanAgainstActual,
    calibrate,
    compare,
    known,
    ledger_total,
)
from holdfast.planner.actual.examples import example_run
from holdfast.planner.actual.ledger import ACCOUNTS, Ledger, Stretch, ledgers

__all__ = [
    "ACCOUNTS",
    "Calibration",
    "Comparison",
    "Known",
    "Ledger",
    "PlanAgainstActual",
    "Stretch",
    "calibrate",
    "compare",
    "example_run",
    "known",
    "ledger_total",
    "ledgers",
]
