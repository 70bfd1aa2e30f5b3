"""
Incident: one fault of one node, from its first sign until the cluster is at full strength.

``stories`` builds incidents from events.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Optional

from holdfast_common.faults import FAULTS, Remedy, Severity, When

PROCESS_FAULTS = frozenset(fault.name for fault in FAULTS if fault.severity is Severity.PROCESS)


class State(Enum):
    UNNOTICED = "unnoticed"
    """Injected, not detected yet."""
    OPEN = "open"
    """Detected, no remedy requested yet."""
    WAITING = "waiting"
    """Its remedy waits for the next step or the end of the job."""
    REFUSED = "refused"
    """Its remedy was refused last: manual action required."""
    REPAIRING = "repairing"
    """A remedy was requested or is in progress."""
    REPAIRED = "repaired"
    """The node is in service again or has a replacement; a fault of one process: its ranks were handed over."""
    NOTED = "noted"
    """The last verdict requires nothing, and no remedy is in progress."""
    WITHDRAWN = "withdrawn"
    """Withdrawn: it is over, or was no fault."""
    REMOVED = "removed"
    """Its node was deleted on request."""


OPEN_STATES = frozenset((State.UNNOTICED, State.OPEN, State.WAITING, State.REFUSED, State.REPAIRING))


@dataclass(frozen=True)
class RemedyStep:
    time_ns: int
    remedy: str
    way: str
    """runtime, slurm, label or api; ``control-plane`` if started by the control plane; empty if unknown."""
    outcome: str
    """requested, under way, done or refused."""

    @property
    def is_pending(self) -> bool:
        return self.outcome in ("requested", "under way")


@dataclass(frozen=True)
class Sighting:
    time_ns: int
    source: str
    text: str


@dataclass(frozen=True)
class Incident:
    """One node's fault. Seconds count from its beginning; unknown is None."""

    id: str
    """The agent's, or else derived from the first event."""
    node: str
    fault: str
    names: tuple[str, ...] = ()
    """All ids that it had at earlier readings; the agent's comes first."""
    host: str = ""
    code: Optional[int] = None
    """Xid or SXid."""
    device: str = ""
    severity: str = ""
    remedy: str = ""
    """Remedy of the last verdict."""
    when: str = ""
    """How long that may wait."""
    injected_ns: Optional[int] = None
    signalled_ns: Optional[int] = None
    """First sign, where reported."""
    noticed_ns: Optional[int] = None
    """The first verdict, of an agent or of the control plane."""
    withdrawn_ns: Optional[int] = None
    removed_ns: Optional[int] = None
    out_ns: Optional[int] = None
    """Start of the node's outage."""
    restored_ns: Optional[int] = None
    """When the node was replaced, or rebooted."""
    replacement: str = ""
    """Instance id of the replacement; empty while there is none, and after a reboot."""
    repaired_with: str = ""
    """The incident whose repair ended this one, too; empty where the repair is its own."""
    strong_ns: Optional[int] = None
    """Time at which no node was missing, and the job had its spare again."""
    job: str = ""
    """The job that was resumed, or runs on the node, as it reports."""
    job_nodes: tuple[str, ...] = ()
    """Instances that it ran on when it was hit."""
    resumed_ns: Optional[int] = None
    handed_over_ns: Optional[int] = None
    """When the agent handed the ranks of the node over; no report of a job changes it."""
    steps_lost: Optional[int] = None
    """Steps lost when the job resumed."""
    steps_redone: Optional[int] = None
    """Lost steps repeated since."""
    stopped_s: Optional[float] = None
    """Downtime of the job."""
    thrown_away_s: Optional[float] = None
    """Duration of the lost steps, as far as reported."""
    remedies: tuple[RemedyStep, ...] = ()
    evidence: tuple[Sighting, ...] = ()
    slurm_jobs: str = ""
    """Jobs that Slurm had on the node when its repair started, comma-separated."""

    @property
    def start_ns(self) -> int:
        return min(time for time in (self.injected_ns, self.signalled_ns, self.noticed_ns) if time is not None)

    @property
    def end_ns(self) -> Optional[int]:
        if self.is_open:
            return None
        known = (self.withdrawn_ns, self.removed_ns, self.restored_ns, self.resumed_ns, self.strong_ns, self.noticed_ns)
        return max(time for time in known if time is not None)

    @property
    def state(self) -> State:
        if self.restored_ns is not None:
            return State.REPAIRED
        if self.withdrawn_ns is not None:
            return State.WITHDRAWN
        if self.removed_ns is not None:
            return State.REMOVED
        if self.is_of_process and self.handed_over_ns is not None:
            return State.REPAIRED
        if self.noticed_ns is None:
            return State.UNNOTICED
        if self.remedy == Remedy.NONE.value and not any(step.is_pending for step in self.remedies):
            return State.NOTED
        if self.remedies:
            return State.REFUSED if self.remedies[-1].outcome == "refused" else State.REPAIRING
        return State.WAITING if self.when == When.BOUNDARY.value else State.OPEN

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def is_of_process(self) -> bool:
        """True if only a process is broken: its node stays."""
        return self.severity == Severity.PROCESS.value or (not self.severity and self.fault in PROCESS_FAULTS)

    @property
    def needs_no_repair(self) -> bool:
        """True if nothing had to be repaired: it was withdrawn, or requires nothing."""
        return self.state in (State.WITHDRAWN, State.NOTED)

    @property
    def resumed_by_agent(self) -> bool:
        """True if the job continued by the agent's hand-over, not by a report of its own."""
        return self.handed_over_ns is not None and self.handed_over_ns == self.resumed_ns

    @property
    def reported_by_job(self) -> "tuple[str, ...]":
        """
        Fields known only from the log of a job, which all users of a node can write; they open and close no incident.
        """
        of_job = ["job_nodes", "steps_lost", "steps_redone", "thrown_away_s"]
        of_job += [] if self.resumed_by_agent else ["job", "resumed_ns", "stopped_s"]
        of_job += ["strong_ns"] if self.job else []
        return tuple(name for name in of_job if getattr(self, name) not in (None, "", ()))

    @property
    def asked_ns(self) -> Optional[int]:
        return min((step.time_ns for step in self.remedies if step.outcome != "refused"), default=None)

    @property
    def signal_s(self) -> Optional[float]:
        """None unless the fault was injected, since its true beginning is unknown otherwise."""
        return None if self.injected_ns is None else self._after_s(self.signalled_ns)

    @property
    def noticed_after_s(self) -> Optional[float]:
        """Until the first verdict; None when that is the beginning itself."""
        is_the_beginning = self.injected_ns is None and self.noticed_ns == self.start_ns
        return None if is_the_beginning else self._after_s(self.noticed_ns)

    @property
    def restored_after_s(self) -> Optional[float]:
        return self._after_s(self.restored_ns)

    @property
    def resumed_after_s(self) -> Optional[float]:
        return self._after_s(self.resumed_ns)

    @property
    def at_strength_after_s(self) -> Optional[float]:
        return self._after_s(self.strong_ns)

    def after_s(self, time_ns: int) -> float:
        return (time_ns - self.start_ns) / 1e9

    def _after_s(self, time_ns: Optional[int]) -> Optional[float]:
        return None if time_ns is None else self.after_s(time_ns)
