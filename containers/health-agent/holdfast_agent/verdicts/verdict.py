"""What is decided about an incident, as far as it is known by now."""

from dataclasses import dataclass, field
from typing import Optional

from holdfast_common import Remedy, Severity, When


@dataclass(frozen=True)
class Evidence:
    """A line that a verdict rests on; ``line`` counts from 1 in a file, and is 0 where there is none."""

    line: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """
    The word on one incident; the last one counts.

    Args:
        incident: Its id, the same in all verdicts on it and after restarts.
        fault: Row of the taxonomy, as of the signal.
        code: Xid or SXid, or None.
        device: As of the signal.
        severity: As of the signal.
        remedy: What the incident asks for after all that was seen.
        when: How long that may wait.
        evidence: The lines, oldest first, at most 20.
        withdrawn: The incident asks for nothing more: it is over, or was none.
        check: A deep check is due at the boundary.
        reason: Why it was withdrawn. Default: empty
        pids: Processes that the kernel named in lines that ask for the remedy of a process. Default: none
        signal_ns: When the first sign of the incident was seen, UTC; nothing is judged by it. Default: 0, not known
        news: The word before on this incident was another. An event is written for news only: a storm of lines is none.
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
