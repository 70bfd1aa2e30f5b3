"""Jobs as the commands know them: what is submitted, what runs, what became of those that ended."""

from ._commands import cancel, job_history, jobs
from ._ended import JobRow, ended_jobs
from ._history import accounting, check_job_id, job_outcome, output_paths, read_output
from ._words import CommandWithArguments, Words, arguments_after_dashes

__all__ = [
    "CommandWithArguments",
    "JobRow",
    "Words",
    "accounting",
    "arguments_after_dashes",
    "cancel",
    "check_job_id",
    "ended_jobs",
    "job_history",
    "job_outcome",
    "jobs",
    "output_paths",
    "read_output",
]
