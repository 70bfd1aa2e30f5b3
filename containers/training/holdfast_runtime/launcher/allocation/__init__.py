"""
The one allocation of a job of several nodes: whether it outlives one of them, and how a lost one comes back.
"""

from holdfast_runtime.launcher.allocation.expansion import LINE, VARIABLE, WITHOUT, Expansion, Request
from holdfast_runtime.launcher.allocation.slurm import job_of, read_submitted
from holdfast_runtime.launcher.allocation.survival import Submitted, Survival, survival

__all__ = [
    "LINE",
    "VARIABLE",
    "WITHOUT",
    "Expansion",
    "Request",
    "Submitted",
    "Survival",
    "job_of",
    "read_submitted",
    "survival",
]
