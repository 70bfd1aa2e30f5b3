"""Parsers of Slurm's answers: text in, records out. Pure."""

from holdfast.cli.slurm.queue import SQUEUE, SQUEUE_FIELDS, merged, parse_squeue
from holdfast.cli.slurm.reasons import drained_words, waits
from holdfast.cli.slurm.records import (
    DELIMITER,
    SACCT,
    SACCT_FIELDS,
    JobRecord,
    newest_first,
    outcome,
    parse_sacct,
)
from holdfast.cli.slurm.submissions import (
    StepFiles,
    Submission,
    first_host,
    output_files,
    parse_submission,
    step_files,
    submit_folder,
)
from holdfast.cli.slurm.tracebacks import Failure, first_failure, named_error
from holdfast.cli.slurm.training import training_of

__all__ = [
    "DELIMITER",
    "SACCT",
    "SACCT_FIELDS",
    "SQUEUE",
    "SQUEUE_FIELDS",
    "Failure",
    "JobRecord",
    "StepFiles",
    "Submission",
    "drained_words",
    "first_failure",
    "first_host",
    "merged",
    "named_error",
    "newest_first",
    "outcome",
    "output_files",
    "parse_sacct",
    "parse_squeue",
    "parse_submission",
    "step_files",
    "submit_folder",
    "training_of",
    "waits",
]
