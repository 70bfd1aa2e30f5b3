"""
From a job file with its folder and options, or from manifests, to a job of Slurm or of Kubernetes; and the Python
environment of jobs.
"""

from holdfast.cli.submission.job_files import check_job_file, check_submission, prepare_data, submit_job
from holdfast.cli.submission.manifests import check_fits, submit_manifests
from holdfast.cli.submission.packages import Environment, check_requirements, make_environment, move_scripts
from holdfast.cli.submission.sbatch_options import CommandWithArguments, Words, arguments_after_dashes
from holdfast.cli.submission.submitting import submit_any

__all__ = [
    "CommandWithArguments",
    "Environment",
    "Words",
    "arguments_after_dashes",
    "check_fits",
    "check_job_file",
    "check_requirements",
    "check_submission",
    "make_environment",
    "move_scripts",
    "prepare_data",
    "submit_any",
    "submit_job",
    "submit_manifests",
]
