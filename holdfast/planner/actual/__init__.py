"""Measured cost of failures, from events, compared with the plan."""

from holdfast.planner.actual.calibration import (
    Calibration,
    Comparison,
    KnownValues,
    LearnedValues,
    PlanAgainstActual,
    calibrate,
    compare,
    known,
    learn,
    ledger_total,
)
from holdfast.planner.actual.examples import example_run
from holdfast.planner.actual.ledger import ACCOUNTS, Ledger, Stretch, ledgers

__all__ = [
    "ACCOUNTS",
    "Calibration",
    "Comparison",
    "KnownValues",
    "LearnedValues",
    "Ledger",
    "PlanAgainstActual",
    "Stretch",
    "calibrate",
    "compare",
    "example_run",
    "known",
    "learn",
    "ledger_total",
    "ledgers",
]
