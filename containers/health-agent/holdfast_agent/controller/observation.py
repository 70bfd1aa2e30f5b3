"""What was seen in one look at the cluster; None where somebody did not answer."""

from dataclasses import dataclass
from typing import Optional

from holdfast_agent.slurm import SlurmNode

RUNNING, PENDING, FAILURE = "Running", "Pending", "Failure"


@dataclass(frozen=True)
class Instance:
    """
    An instance as ListClusterNodes shows it.

    Args:
        instance_id: Its id.
        group: Of instances.
        status: Running, Failure, Pending, ShuttingDown, SystemUpdating, DeepHealthCheckInProgress, NotFound.
        host: Its name in Slurm.
        message: What the service says beside the status.
    """

    instance_id: str
    group: str
    status: str
    host: str = ""
    message: str = ""


@dataclass(frozen=True)
class HmaRecord:
    """A log line of HyperPod's agent on an instance."""

    instance_id: str
    event_id: str
    text: str


@dataclass(frozen=True)
class Observation:
    """
    One look.

    Args:
        boot_s: When it began.
        instances: None: the service did not answer.
        nodes: None: Slurm did not answer.
        records: New log lines of HyperPod's agents. None: CloudWatch Logs did not answer.
        is_told: Whether a control plane writes the events of nodes itself. None: not known.
        problems: Why something is None, for people.
    """

    boot_s: float
    instances: "Optional[tuple[Instance, ...]]" = None
    nodes: "Optional[tuple[SlurmNode, ...]]" = None
    records: "Optional[tuple[HmaRecord, ...]]" = None
    is_told: Optional[bool] = None
    problems: "tuple[str, ...]" = ()
