from dataclasses import dataclass, field
from typing import Optional

from holdfast_common import Remedy, Severity, When


@dataclass(frozen=True)
class Evidence:
    """Line of evidence; ``line`` counts from 1, and is 0 outside of a file."""

    line: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """
    Verdict on one incident; the last one counts.

    Args:
        incident: Id, the same in all its verdicts and after restarts.
        fault: Row of the taxonomy.
        code: Xid or SXid, or None.
        remedy: Required, after all sightings.
        when: Its urgency.
        evidence: Lines, oldest first, at most 20.
        withdrawn: The incident requires nothing more.
        check: Requires a deep check at the boundary.
        reason: Of the withdrawal.
        pids: Processes named by the kernel in lines with a process remedy.
        signal_ns: First sign, UTC; for statistics only. Default: 0, unknown
        news: It differs from the previous verdict; an event is written for news only.
    """

    incident: str
    fault: str
    code: Optional[int]
    device: str
    severity: Severity
    remedy: Remedy
    when: When
    evidence: tuple[Evidence, ...]
    withdrawn: bool
    check: bool = False
    reason: str = ""
    pids: "tuple[int, ...]" = ()
    signal_ns: int = field(default=0, compare=False)
    news: bool = True
