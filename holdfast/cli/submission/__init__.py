"""From a job file, its folder and options of sbatch to a job in Slurm's queue."""

from holdfast.cli.submission.job_files import check_job_file, check_submission, prepare_data, submit_job
from holdfast.cli.submission.sbatch_options import CommandWithArguments, Words, arguments_after_dashes

__all__ = [
    "CommandWithArguments",
    "Words",
    "arguments_after_dashes",
    "check_job_file",
    "check_submission",
    "prepare_data",
    "submit_job",
]
