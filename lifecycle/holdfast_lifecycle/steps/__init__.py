"""The steps of a node, one file each; STEPS is the list from which role and hook choose."""

from holdfast_lifecycle.steps import (
    _accounting,
    _clock,
    _fsx,
    _job_environment,
    _lustre_efa,
    _mounts,
    _munge,
    _preload,
    _scripts,
    _slurm,
    _slurm_daemon,
    _slurm_state,
    _ubuntu_home,
    _users,
    _volume,
    _witness,
)

STEPS = (
    _volume.STEP,
    _lustre_efa.STEP,
    _users.STEP,
    _mounts.STEP,
    _fsx.STEP,
    _clock.STEP,
    _preload.STEP,
    _job_environment.STEP,
    _witness.STEP,
    _munge.STEP,
    _slurm_state.STEP,
    _accounting.STEP,
    _slurm_daemon.STEP,
    _ubuntu_home.STEP,
    _slurm.STEP,
    _scripts.STEP,
)

__all__ = ["STEPS"]
