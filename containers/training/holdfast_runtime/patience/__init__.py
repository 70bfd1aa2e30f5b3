"""
How often what failed is tried again, and how long silence is no failure: the rules by which a job ends with its reason.

``errors`` is about exceptions of the program and generations that lead nowhere, ``refusals`` about state that ranks do
not get, ``pace`` about the time that steps take, ``hang`` about ranks that make no progress. Pure: no clock, no process,
no socket.
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
from holdfast_runtime.patience.refusals import Refusals, refused

__all__ = [
    "STEPS",
    "Error",
    "Ledger",
    "Limits",
    "Pace",
    "ProgressReport",
    "Refusals",
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
    "refused",
    "silence_s",
]
