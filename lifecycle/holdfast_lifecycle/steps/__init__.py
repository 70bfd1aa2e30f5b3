"""The steps of a node, one file each; STEPS is the list that on_create.sh runs."""

from holdfast_lifecycle.steps import _clock, _fsx, _job_environment, _preload, _scripts, _slurm, _users

STEPS = (_users.STEP, _fsx.STEP, _clock.STEP, _preload.STEP, _job_environment.STEP, _slurm.STEP, _scripts.STEP)

__all__ = ["STEPS"]
