from pathlib import Path

from holdfast.cli.deployed import Context
from holdfast.cli.submission.job_files import submit_job
from holdfast.cli.submission.manifests import submit_manifests
from holdfast.cli.submission.sbatch_options import SbatchArguments


def submit_any(
    context: Context,
    *,
    file: Path,
    user: str,
    words: SbatchArguments | None = None,
    submission: str | None = None,
    folder: Path | None = None,
) -> str:
    """Submit a job file to Slurm, or manifests to Kubernetes. Returns the job's id, empty if nothing was submitted."""
    if context.orchestrator == "eks":
        return submit_manifests(context, file=file, submission=submission)
    return submit_job(context, file=file, user=user, words=words, submission=submission, folder=folder)
