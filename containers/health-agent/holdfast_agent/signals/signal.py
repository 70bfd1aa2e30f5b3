"""One sighting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Union


@dataclass(frozen=True)
class Signal:
    """
    One sighting by one detector: what was seen, never what to do about it.

    Args:
        condition: The row of the policy that it is judged by, such as ``xid`` or ``mount-stalled``.
        boot_s: Seconds since boot. Windows and deadlines are counted with it, since a wall clock jumps.
        time_ns: UTC nanoseconds, for people and for a history that outlives a boot. Default: not known.
        detector: Which one saw it. Default: the kernel log.
        device: PCI address, mount point, interface or process that it is about. Default: the whole node.
        code: Number of an Xid or SXid. Default: it has none.
        facts: What the policy asks for beside the code, such as ``link`` or ``fatal``.
        evidence: One line, as it stood where it was seen.
        over: The condition was seen to have ended. Default: it was seen to hold.
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
