"""
How often what failed is tried again, and how long silence is no failure: the rules by which a job ends with its reason.

``errors`` is about exceptions of the program and generations that lead nowhere, ``pace`` about the time that steps
take, ``hang`` about ranks that make no progress. Pure: no clock, no process, no socket.
"""

from holdfast_runtime.patience.errors import (
    STEPS,
    Error,
    Ledger,
    Spent,
    Verdict,
    Where,
    begun,
    budget,
    failed,
    judged,
    noted,
)
from holdfast_runtime.patience.hang import Limits, ProgressReport, hang
from holdfast_runtime.patience.pace import Pace, moved, paused, silence_s

__all__ = [
    "STEPS",
    "Error",
    "Ledger",
    "Limits",
    "Pace",
    "ProgressReport",
    "Spent",
    "Verdict",
    "Where",
    "begun",
    "budget",
    "failed",
    "hang",
    "judged",
    "moved",
    "noted",
    "paused",
    "silence_s",
]
