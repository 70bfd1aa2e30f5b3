"""Slurm answers: the controller of the cluster, and on a compute node its own daemon as the controller sees it."""

import os
import time

from holdfast_lifecycle._context import Context
from holdfast_lifecycle._programs import run_program
from holdfast_lifecycle._step import COMPUTE, SLURM, Step, StepError

_WAIT_S = 110.0
_LONGEST_PAUSE_S = 2.0
_UNREADY = ("down", "unk", "fail", "power", "boot", "reboot", "future")


def _complaint(context: Context) -> str:
    """What is wrong; empty when Slurm is ready here."""
    try:
        ping = run_program("scontrol", "ping", timeout_s=15)
        if " is UP" not in ping:
            return f"scontrol ping: {ping.strip() or 'no answer'}"
        if context.role != COMPUTE:
            return ""
        host = os.uname().nodename
        state = run_program("sinfo", "--noheader", "--Node", "--nodes", host, "--format", "%T", timeout_s=15).split()
    except StepError as error:
        if "installed" in error.expected:
            raise
        return error.seen
    if not state:
        return f"the controller knows no node named {host}"
    # A trailing star is Slurm's mark for a daemon that does not answer.
    is_ready = not state[0].endswith("*") and not state[0].lower().startswith(_UNREADY)
    return "" if is_ready else f"the controller sees {host} as {state[0]}"


def check(context: Context) -> bool:
    return not _complaint(context)


def apply(context: Context) -> None:
    """Wait: the service starts the daemons, and they need a moment to find each other."""
    deadline = time.monotonic() + _WAIT_S
    pause_s = 0.05
    while _complaint(context) and time.monotonic() < deadline:
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)


def verify(context: Context) -> str:
    complaint = _complaint(context)
    if complaint:
        compute = context.role == COMPUTE
        raise StepError(
            expected="slurmd is registered with the controller" if compute else "the Slurm controller answers",
            seen=f"{complaint}, for {_WAIT_S:g} s",
            action=f"read {'slurmd' if compute else 'slurmctld'}'s log on this node"
            f" and check that ports 6817-6818 are open between the nodes and {context.controller_address}",
        )
    return "slurmd is registered" if context.role == COMPUTE else "the controller is up"


STEP = Step(name="slurm", check=check, apply=apply, verify=verify, timeout_s=150, roles=SLURM)
