"""Breaks a node under a job and watches it come back."""

from holdfast.cli.rehearsal.faults import Fault, inject
from holdfast.cli.rehearsal.jobs import rehearse_jobs

__all__ = ["Fault", "inject", "rehearse_jobs"]
