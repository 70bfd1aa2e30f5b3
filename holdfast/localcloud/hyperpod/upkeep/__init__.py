"""Daemons of nodes in service: detect missing and stopped ones, restart and report."""

from holdfast.localcloud.hyperpod.upkeep.decisions import (
    END_AFTER_S,
    REPORT_AFTER_S,
    START_AFTER_S,
    Condition,
    Daemon,
    Decision,
    condition,
    decide,
)
from holdfast.localcloud.hyperpod.upkeep.thread import Upkeep, WatchedNode

__all__ = [
    "END_AFTER_S",
    "REPORT_AFTER_S",
    "START_AFTER_S",
    "Condition",
    "Daemon",
    "Decision",
    "Upkeep",
    "WatchedNode",
    "condition",
    "decide",
]
