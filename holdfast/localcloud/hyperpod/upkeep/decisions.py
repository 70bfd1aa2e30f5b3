"""
What is to be done about a daemon that was seen missing or stopped for some time. Pure.

What HyperPod does is not documented. systemd's own turn comes first: a unit with ``Restart=`` is started again by it.
A slurmd that stands still is left to Slurm, which gives its node up after SlurmdTimeout.
"""

from dataclasses import dataclass
from typing import Literal

from holdfast.localcloud.roster import EVERY, Place, upkept

REPORT_AFTER_S = 3.0
"""Longer than a restart on purpose."""
START_AFTER_S = 8.0
"""Longer than RestartSec of the units of AWS's scripts and ours, which is 5 s."""
END_AFTER_S = 30.0
"""As slurm.conf's SlurmctldTimeout here: a backup controller, where there is one, would take over then."""
_ENDED = frozenset(one.name for one in EVERY if one.ends_when_stopped)

Condition = Literal["well", "gone", "stopped"]
Decision = Literal["", "report", "start", "end"]


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """One of a node."""

    program: str
    condition: Condition
    for_s: float
    """How long it has been so."""
    reported: bool = False


def condition(program: str, *, place: Place, running: str | None) -> Condition:
    """From its state in /proc; what need not run on a node of this kind is well."""
    if running is not None:
        return "stopped" if running in "Tt" else "well"
    return "gone" if program in {one.name for one in upkept(place)} else "well"


def decide(daemon: Daemon) -> Decision:
    """``end``: it stands still and nobody else would notice; it is killed and so started again."""
    if daemon.condition == "well":
        return ""
    if daemon.condition == "gone" and daemon.for_s >= START_AFTER_S:
        return "start"
    if daemon.condition == "stopped" and daemon.for_s >= END_AFTER_S and daemon.program in _ENDED:
        return "end"
    return "report" if daemon.for_s >= REPORT_AFTER_S and not daemon.reported else ""
