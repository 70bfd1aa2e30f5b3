"""One process of the local system."""

from dataclasses import dataclass
from enum import Enum

NOTICED_WITHIN_S = 15.0
"""The bound for all; where a kernel holds a process it is 60 s."""


class Place(Enum):
    """Where a process runs."""

    MACHINE = "this machine"
    NODE = "each node"
    CONTROLLER = "the controller under Slurm"
    COMPUTE = "each compute node under Slurm"
    CONTROL_PLANE = "the control plane of EKS"
    WORKER = "each node of EKS"


@dataclass(frozen=True, kw_only=True)
class SystemProcess:
    """
    One kind of process.

    Args:
        name: Of its record, on the machine; elsewhere of its program, as ps shows it.
        what: For messages.
        restarted_by: What starts it again after SIGKILL; empty: nothing does, and ``reported`` says it.
        reported: Where its loss shows.
        stopped: What becomes of it after SIGSTOP.
        noticed_within_s: Of its loss.
        unit: On a node: the unit that is restarted by the control plane where systemd does not. Empty: none
        marks: Bytes, some of which its command line holds, which tell it from others of its name. Default: any
        shown: Names under which ps shows it. Default: its name
        ends_when_stopped: The control plane kills it, and so has it restarted, when it stands still.
    """

    name: str
    place: Place
    what: str
    restarted_by: str
    reported: str
    stopped: str
    noticed_within_s: float = NOTICED_WITHIN_S
    unit: str = ""
    marks: tuple[bytes, ...] = ()
    shown: tuple[str, ...] = ()
    ends_when_stopped: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", self.shown or (self.name,))
