"""Submission of job files to Slurm and of manifests to Kubernetes; Python environments of jobs."""

from holdfast.cli.submission.caller import from_caller
from holdfast.cli.submission.folders import read_folder
from holdfast.cli.submission.job_files import check_job_file, prepare_data, submit_job
from holdfast.cli.submission.job_text import JobTextError, check_text, late_options, options_of
from holdfast.cli.submission.manifests import check_fits, submit_manifests
from holdfast.cli.submission.packages import Environment, check_requirements, make_environment, move_scripts
from holdfast.cli.submission.plain_files import check_submission
from holdfast.cli.submission.sbatch_options import CommandWithArguments, SbatchArguments, arguments_after_dashes
from holdfast.cli.submission.submitting import submit_any

__all__ = [
    "CommandWithArguments",
    "Environment",
    "JobTextError",
    "SbatchArguments",
    "arguments_after_dashes",
    "check_fits",
    "check_job_file",
    "check_requirements",
    "check_submission",
    "check_text",
    "from_caller",
    "late_options",
    "make_environment",
    "move_scripts",
    "options_of",
    "prepare_data",
    "read_folder",
    "submit_any",
    "submit_job",
    "submit_manifests",
]
