"""
Decisions about a daemon that is missing or stopped. Pure.

HyperPod's behaviour is undocumented. systemd restarts a unit with ``Restart=`` first. A stopped slurmd is left to
Slurm, which sets its node DOWN after SlurmdTimeout.
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
    program: str
    condition: Condition
    for_s: float
    """Seconds in this condition."""
    reported: bool = False


def condition(program: str, *, place: Place, running: str | None) -> Condition:
    """Return the condition by the state in /proc; a daemon that is not required is well."""
    if running is not None:
        return "stopped" if running in "Tt" else "well"
    return "gone" if program in {one.name for one in upkept(place)} else "well"


def decide(daemon: Daemon) -> Decision:
    """Return the action; ``end``: a stopped daemon that nothing else detects is killed, and so restarted."""
    if daemon.condition == "well":
        return ""
    if daemon.condition == "gone" and daemon.for_s >= START_AFTER_S:
        return "start"
    if daemon.condition == "stopped" and daemon.for_s >= END_AFTER_S and daemon.program in _ENDED:
        return "end"
    return "report" if daemon.for_s >= REPORT_AFTER_S and not daemon.reported else ""
