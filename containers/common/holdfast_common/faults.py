"""The fault taxonomy: which signal means which fault, how bad it is, and the least remedy that cures it.

Knowledge as data. Every row names where it comes from; whoever detects or injects a fault uses its name from here.
"""

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How far the damage reaches."""

    PROCESS = "process"
    """One process; its node is sound."""
    NODE = "node"
    """Everything on the node."""


class Remedy(Enum):
    """What cures a fault, least first."""

    NONE = "none"
    RESTART_PROCESS = "restart-process"
    REBOOT = "reboot"
    REPLACE = "replace"


@dataclass(frozen=True)
class Fault:
    """A row of the taxonomy."""

    name: str
    signal: str
    severity: Severity
    remedy: Remedy
    source: str


FAULTS = (
    Fault(
        name="instance-lost",
        signal="the instance's init process is gone",
        severity=Severity.NODE,
        remedy=Remedy.REPLACE,
        source="SageMaker HyperPod developer guide, cluster resiliency: failed instances are replaced",
    ),
    Fault(
        name="instance-unreachable",
        signal="Slurm marks the node down after SlurmdTimeout while the instance still exists",
        severity=Severity.NODE,
        remedy=Remedy.REBOOT,
        source="slurm.conf manual page, SlurmdTimeout",
    ),
    Fault(
        name="lifecycle-failed",
        signal="a lifecycle script ended with an exit code other than 0",
        severity=Severity.NODE,
        remedy=Remedy.REPLACE,
        source="SageMaker HyperPod developer guide, lifecycle scripts: a failing script fails the instance",
    ),
    Fault(
        name="rank-died",
        signal="a training process ended by a signal or an exit code other than 0 while its node answers",
        severity=Severity.PROCESS,
        remedy=Remedy.RESTART_PROCESS,
        source="srun manual page, --kill-on-bad-exit; Slurm does not requeue for it",
    ),
)

_BY_NAME = {fault.name: fault for fault in FAULTS}


def fault_named(name: str) -> Fault:
    """The row of a fault; raises KeyError with the names there are."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"unknown fault '{name}'; the taxonomy has {', '.join(sorted(_BY_NAME))}") from None
