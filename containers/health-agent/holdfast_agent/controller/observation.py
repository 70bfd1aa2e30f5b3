"""Result of one poll of the cluster; None where a source did not respond."""

from dataclasses import dataclass
from typing import Optional

from holdfast_agent.slurm import SlurmNode

RUNNING, PENDING, FAILURE = "Running", "Pending", "Failure"
MOVING = ("DetachInProgress", "AttachInProgress")
AWAY = ("SystemUpdating", *MOVING)
"""Statuses of an instance whose root volume is being replaced on request: silence is expected."""


@dataclass(frozen=True)
class Instance:
    """
    Instance as in ListClusterNodes.

    Args:
        group: Instance group.
        status: Running, Failure, Pending, ShuttingDown, SystemUpdating, DeepHealthCheckInProgress, NotFound,
            DetachInProgress, AttachInProgress.
        host: Its name in Slurm.
    """

    instance_id: str
    group: str
    status: str
    host: str = ""
    message: str = ""


@dataclass(frozen=True)
class HmaRecord:
    instance_id: str
    event_id: str
    text: str


@dataclass(frozen=True)
class Observation:
    """
    Args:
        boot_s: Start of the poll.
        instances, nodes, records: None: the source did not respond.
        has_control_plane_events: A control plane writes the events of nodes. None: unknown.
        problems: Reasons of missing sources.
    """

    boot_s: float
    instances: "Optional[tuple[Instance, ...]]" = None
    nodes: "Optional[tuple[SlurmNode, ...]]" = None
    records: "Optional[tuple[HmaRecord, ...]]" = None
    has_control_plane_events: Optional[bool] = None
    problems: "tuple[str, ...]" = ()
