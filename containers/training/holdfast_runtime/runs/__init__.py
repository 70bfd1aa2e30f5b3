"""
A run folder belongs to one submission: its checkpoints are never taken by another job that happens to have its number.

    python -m holdfast_runtime.runs /fsx/checkpoints/mine-$SLURM_JOB_ID || exit 2
"""

from holdfast_runtime.runs.claims import RunFolderError, claim
from holdfast_runtime.runs.command import main
from holdfast_runtime.runs.submission import Submission, find_submission

__all__ = ["RunFolderError", "Submission", "claim", "find_submission", "main"]
