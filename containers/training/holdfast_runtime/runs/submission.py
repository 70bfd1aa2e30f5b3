"""
Identity of the submission that this process belongs to.

A controller that lost its state counts jobs from 1 again (slurm.conf(5), StateSaveLocation), so the job's number counts
together with a name of the series that the lifecycle keeps beside Slurm's state. A requeued job keeps its number.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GIVEN = "HOLDFAST_SUBMISSION"
SERIES = "HOLDFAST_JOB_SERIES"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """One, with all its restarts and all tasks of its array."""

    identity: str
    job: str = ""
    """Number of the job, for people; empty when the identity was given."""
    start: str = ""
    """When this attempt of the job started, reported by Slurm since 23.02; empty where it does not, and for arrays."""
    restarts: int = 0

    def is_another_start(self, other: "Submission") -> bool:
        return bool(self.start and other.start and self.start != other.start) and self.restarts == other.restarts == 0


def find_submission(environment: Mapping[str, str] = os.environ) -> Submission | None:
    """From ``HOLDFAST_SUBMISSION``, or from Slurm; None outside of both, where nothing can be compared."""
    given = environment.get(GIVEN, "").strip()
    if given:
        return Submission(identity=f"submission {given}")
    array = environment.get("SLURM_ARRAY_JOB_ID", "")
    job = array or environment.get("SLURM_JOB_ID", "")
    if not job:
        return None
    cluster = environment.get("HOLDFAST_CLUSTER") or environment.get("SLURM_CLUSTER_NAME", "")
    return Submission(
        identity=f"job {job} of cluster {cluster}, series {_series(environment)}",
        job=job,
        start="" if array else environment.get("SLURM_JOB_START_TIME", ""),
        restarts=int(environment.get("SLURM_RESTART_COUNT") or 0),
    )


def _series(environment: Mapping[str, str]) -> str:
    try:
        return Path(environment[SERIES]).read_text().strip() or "unknown"
    except (KeyError, OSError, UnicodeDecodeError):
        return "unknown"
