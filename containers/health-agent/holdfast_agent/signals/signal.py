from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Union


@dataclass(frozen=True)
class Signal:
    """
    One observation of a detector, without a judgement.

    Args:
        condition: Row of the policy, such as ``xid`` or ``mount-stalled``.
        boot_s: Seconds since boot, for windows and deadlines: a wall clock jumps.
        time_ns: UTC nanoseconds, for people and across boots.
        device: PCI address, mount point, interface or process. Default: the whole node.
        code: Number of an Xid or SXid.
        facts: Details for the policy, such as ``link`` or ``fatal``.
        evidence: One line, as observed.
        over: The condition has ended. Default: it holds.
    """

    condition: str
    boot_s: float
    time_ns: int = 0
    detector: str = "kernel-log"
    device: str = ""
    code: Optional[int] = None
    facts: Mapping[str, Union[str, int, float, bool]] = field(default_factory=dict)
    evidence: str = ""
    over: bool = False
