"""Measured cost of failures, from events, compared with the plan."""

from holdfast.planner.actual.calibration import (
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
from holdfast.planner.actual.ledger import ACCOUNTS, Stretch, ledgers

__all__ = [
    "ACCOUNTS",
    "KnownValues",
    "LearnedValues",
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
