"""
The daemon of this node runs, slurmctld on the controller and slurmd elsewhere, and the other cannot start.

In extension mode HyperPod has started them; only slurmctld is restarted after its state was moved. In custom mode
slurmd gets its configuration from the controller (``--conf-server``, "configless" in Slurm's documents) through a
drop-in. A node that the controller does not know yet cannot stay up: HyperPod adds its line minutes after the scripts
of a scale-up, and systemd restarts slurmd until then (``Restart=``).
"""

import contextlib

from holdfast_lifecycle.model import CONTROLLER, Context, StepError
from holdfast_lifecycle.node import (
    add_to_unit,
    disable,
    drop_in,
    is_active,
    is_written,
    run_program,
    start,
    wait_for_configuration,
)

# A unit file that lies in /etc/systemd/system, as those of the AMI do, cannot be masked: systemctl(1) would have to
# put its link in the same place. A condition that never holds does the same.
_NEVER = """\
# Written by holdfast_lifecycle: this daemon has no place on a {role} node.
[Unit]
ConditionPathExists=/run/holdfast/start-{unit}
"""
_SLURMD = """\
# Written by holdfast_lifecycle at node creation.
[Unit]
StartLimitIntervalSec=0
[Service]
Environment="SLURMD_OPTIONS=--conf-server {controller}"
Restart=on-failure
RestartSec=5
"""


def _daemons(context: Context) -> tuple[str, str]:
    return ("slurmctld", "slurmd") if context.role == CONTROLLER else ("slurmd", "slurmctld")


def _drop_ins(context: Context) -> dict[str, str]:
    own, other = _daemons(context)
    added = {other: _NEVER.format(role=context.role, unit=other)}
    if own == "slurmd":
        added[own] = _SLURMD.format(controller=context.controller_address)
    return added


def check(context: Context) -> bool:
    if not context.starts_slurm:
        return context.role != CONTROLLER or is_active("slurmctld")
    written = (is_written(drop_in(context, unit), text.encode()) for unit, text in _drop_ins(context).items())
    # slurmd of a node that Slurm does not know yet is on and off, and not ours to wait for.
    return all(written) and (context.role != CONTROLLER or is_active("slurmctld"))


def apply(context: Context) -> None:
    if not context.starts_slurm:
        start("slurmctld")
        return
    own, other = _daemons(context)
    if context.role == CONTROLLER:
        wait_for_configuration(context)
    elif not context.controller_address:
        raise StepError(
            expected="resource_config.json has the controller's address",
            seen="the group of the controller has no instance",
            action="check that the controller was created before this node, and run the lifecycle again",
        )
    changed = {unit: add_to_unit(context, unit, text) for unit, text in _drop_ins(context).items()}
    disable(other)
    if own == "slurmctld":
        start(own)
        return
    # That it cannot stay up yet is no failure of this step; the step slurm looks whether it should.
    with contextlib.suppress(StepError):
        start(own)
    if changed[own] and is_active(own):
        with contextlib.suppress(StepError):
            run_program("systemctl", "restart", own, timeout_s=90)


def verify(context: Context) -> str:
    own, other = _daemons(context)
    if not check(context):
        raise StepError(
            expected=f"{own} runs here and {other} does not",
            seen=f"{own} is {'active' if is_active(own) else 'not active'}",
            action=f"read 'journalctl -u {own}' and {own}'s log on this node",
        )
    if not context.starts_slurm:
        return "HyperPod started it" if context.role != CONTROLLER else "slurmctld runs"
    state = "runs" if is_active(own) else "restarts until the controller has this node"
    return f"{own} {state}"
