"""
Slurm answers, and the controller sees this node.

A compute node that the controller does not know is no failure: on a scale-up HyperPod adds its line to slurm.conf
minutes after the scripts have ended, and a script that waits for it fails a healthy node.
"""

import os
import socket
import time
from typing import NamedTuple

from holdfast_lifecycle.model import COMPUTE, CONTROLLER, Context, StepError
from holdfast_lifecycle.node import run_program

_WAIT_S = 110.0
_UNKNOWN_WAIT_S = 5.0
"""How long a node that is not known yet looks whether it is about to be."""
_LONGEST_PAUSE_S = 2.0
_UNREADY = ("down", "unk", "fail", "power", "boot", "reboot", "future")
_PORT = 6817
_NO_CONFIGURATION = "configuration source"


class _Answer(NamedTuple):
    complaint: str
    """What is wrong; empty when Slurm is ready here."""
    is_unknown: bool
    """Whether it is that the controller does not know this node."""


_last: dict[str, _Answer] = {}
"""By root folder, what was seen last: verify judges that, since many nodes that ask twice are a load on slurmctld."""


def _look(context: Context) -> _Answer:
    answer = _last[str(context.root)] = _Answer(*_ask(context))
    return answer


def _ask(context: Context) -> tuple[str, bool]:
    try:
        if context.role != COMPUTE:
            ping = run_program("scontrol", "ping", timeout_s=15)
            return ("" if " is UP" in ping else f"scontrol ping: {ping.strip() or 'no answer'}"), False
        host = os.uname().nodename
        state = run_program("sinfo", "--noheader", "--Node", "--nodes", host, "--format", "%T", timeout_s=15).split()
    except StepError as error:
        if "installed" in error.expected:
            raise
        return error.seen, _is_unconfigured(context, error.seen)
    if not state:
        return f"the controller has no node named {host}", True
    # A trailing star is Slurm's mark for a daemon that does not answer.
    is_ready = not state[0].endswith("*") and not state[0].lower().startswith(_UNREADY)
    return "" if is_ready else f"the controller sees {host} as {state[0]}", False


def _is_unconfigured(context: Context, complaint: str) -> bool:
    """
    True if slurmd has fetched no configuration: a node without a line in slurm.conf, or a login node in custom mode.
    """
    if context.role == CONTROLLER or _NO_CONFIGURATION not in complaint:
        return False
    try:
        with socket.create_connection((context.controller_address, _PORT), timeout=5):
            return True
    except OSError:
        return False


def check(context: Context) -> bool:
    return not _look(context).complaint


def apply(context: Context) -> None:
    """Wait: the daemons need a moment to connect."""
    began = time.monotonic()
    pause_s = 0.2
    while True:
        complaint, is_unknown = _look(context)
        if not complaint or time.monotonic() > began + (_UNKNOWN_WAIT_S if is_unknown else _WAIT_S):
            return
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)


def verify(context: Context) -> str:
    complaint, is_unknown = _last.get(str(context.root)) or _look(context)
    compute = context.role == COMPUTE
    if is_unknown:
        return f"{complaint}: it joins after HyperPod adds its line"
    if complaint:
        raise StepError(
            expected="slurmd is registered with the controller" if compute else "the Slurm controller answers",
            seen=f"{complaint}, for {_WAIT_S:g} s",
            action=f"read {'slurmd' if compute else 'slurmctld'}'s log on this node"
            f" and check that ports 6817-6819 are open between the nodes and {context.controller_address}",
        )
    return "slurmd is registered" if compute else "the controller is up"
