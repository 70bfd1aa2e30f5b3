from dataclasses import dataclass
from enum import Enum

NOTICED_WITHIN_S = 15.0
"""The bound for all; where a kernel holds a process it is 60 s."""


class Place(Enum):
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
        name: Of its record on the machine; elsewhere of its program in ps.
        what: For messages.
        restarted_by: What restarts it after SIGKILL.
        reported: Where its loss shows.
        stopped: Result of SIGSTOP.
        noticed_within_s: Time until its loss is noticed.
        unit: On a node: unit that the control plane restarts where systemd does not. Empty: none
        marks: Bytes in its command line that distinguish it from others of its name. Default: any
        shown: Names in ps. Default: its name
        ends_when_stopped: True if the control plane kills it when it is stopped.
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
