"""
Table of steps: roles, order and timeouts; implementations are in their own files.

Only the files of chosen steps are imported, since their imports dominate the time.
"""

from importlib import import_module
from typing import cast

from holdfast_lifecycle.model import COMPUTE, CONTROLLER, EVERYWHERE, HOOKS, KUBERNETES, ON_CREATE, SLURM, Step, Work

_Names = tuple[str, ...]


def _step(
    name: str,
    *,
    timeout_s: float,
    file: str = "",
    needs: _Names = (),
    roles: _Names = EVERYWHERE,
    hooks: _Names = HOOKS,
) -> Step:
    """Row of the table. ``file`` if it is not named as the step; names are in events and logs."""

    def load() -> Work:
        return cast("Work", import_module(f"{__name__}.{file or name}"))

    return Step(name=name, load=load, timeout_s=timeout_s, needs=needs, roles=roles, hooks=hooks)


STEPS = (
    _step("volume", timeout_s=900, roles=(KUBERNETES,), hooks=(ON_CREATE,)),
    _step("lustre_efa", timeout_s=180, roles=(KUBERNETES,), hooks=(ON_CREATE,)),
    _step("users", timeout_s=90),
    _step("mounts", timeout_s=300, roles=SLURM, hooks=(ON_CREATE,)),
    _step("fsx", timeout_s=90, needs=("mounts",)),
    _step("user_homes", timeout_s=120, needs=("users", "fsx")),
    _step("clock", timeout_s=30, needs=("fsx",)),
    _step("preload", timeout_s=30, needs=("fsx",), roles=(CONTROLLER,)),
    _step("job_environment", timeout_s=30),
    _step("agent", timeout_s=60),
    _step("burn_in", timeout_s=2100, needs=("fsx", "agent"), roles=(COMPUTE, KUBERNETES)),
    _step("witness", timeout_s=120, needs=("job_environment",), roles=(CONTROLLER,)),
    _step("munge", file="slurm.munge", timeout_s=120, roles=SLURM, hooks=(ON_CREATE,)),
    _step("slurm_state", file="slurm.state", timeout_s=540, needs=("fsx",), roles=(CONTROLLER,)),
    _step("accounting", file="slurm.accounting", timeout_s=420, needs=("munge", "slurm_state"), roles=(CONTROLLER,)),
    _step(
        "slurm_daemon",
        file="slurm.daemon",
        timeout_s=300,
        needs=("munge", "slurm_state", "accounting", "burn_in"),
        roles=SLURM,
    ),
    _step("ubuntu_home", timeout_s=120, needs=("fsx", "users"), roles=SLURM, hooks=(ON_CREATE,)),
    _step("slurm", file="slurm.answers", timeout_s=150, needs=("slurm_daemon",), roles=SLURM),
    _step(
        "scripts",
        timeout_s=1800,
        needs=(
            *("volume", "lustre_efa", "users", "user_homes", "fsx", "clock", "job_environment", "burn_in"),
            *("ubuntu_home", "slurm"),
        ),
    ),
)

__all__ = [
    "STEPS",
    "agent",
    "burn_in",
    "clock",
    "fsx",
    "job_environment",
    "lustre_efa",
    "mounts",
    "preload",
    "scripts",
    "volume",
    "witness",
]
