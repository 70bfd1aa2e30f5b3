"""
How often what failed is tried again, and how long silence is no failure: the rules by which a job ends with its reason.

``_errors`` is about exceptions of the program and epochs that lead nowhere, ``_pace`` about the time that steps take.
Pure: no clock, no process, no socket.
"""

from holdfast_runtime.patience._errors import Error, Ledger, Verdict, Where, begun, budget, judged, noted
from holdfast_runtime.patience._pace import MULTIPLE, Pace, moved, paused, silence_s

__all__ = [
    "MULTIPLE",
    "Error",
    "Ledger",
    "Pace",
    "Verdict",
    "Where",
    "begun",
    "budget",
    "judged",
    "moved",
    "noted",
    "paused",
    "silence_s",
]
