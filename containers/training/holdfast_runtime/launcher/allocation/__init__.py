"""
The one allocation of a job of several nodes: whether it outlives one of them, and how a lost one comes back.
"""

from holdfast_runtime.launcher.allocation.expansion import (
    VARIABLE,
    WITHOUT,
    Expansion,
    Request,
    launcher,
    like,
    pause_after,
    without_slurm,
)
from holdfast_runtime.launcher.allocation.options import no_kill_of, no_kill_of_script, no_kill_of_sruns
from holdfast_runtime.launcher.allocation.slurm import job_of, read_job, read_submitted
from holdfast_runtime.launcher.allocation.survival import SubmittedJob, survival

__all__ = [
    "VARIABLE",
    "WITHOUT",
    "Expansion",
    "Request",
    "SubmittedJob",
    "job_of",
    "launcher",
    "like",
    "no_kill_of",
    "no_kill_of_script",
    "no_kill_of_sruns",
    "pause_after",
    "read_job",
    "read_submitted",
    "survival",
    "without_slurm",
]
