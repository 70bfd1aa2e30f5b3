"""
Limits of retries and silence: the rules by which a job ends with its reason. Pure.

``errors``: exceptions of the program and generations without progress; ``refusals``: state that ranks do not get;
``pace``: durations of steps; ``hang``: ranks that make no progress.
"""

from holdfast_runtime.patience.errors import (
    STEPS,
    Error,
    Ledger,
    Where,
    begun,
    budget,
    failed,
    judged,
    noted,
)
from holdfast_runtime.patience.hang import Limits, ProgressReport, blames, hang
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
    "Where",
    "begun",
    "blames",
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
