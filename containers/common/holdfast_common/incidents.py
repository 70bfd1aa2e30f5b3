"""
An incident: one fault of one node as one story, from its first sign until the cluster is at full strength again.

What an incident is and what follows from its moments stands here; how it is told from events stands in ``stories``.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Optional

from holdfast_common.faults import FAULTS, Remedy, Severity, When

PROCESS_FAULTS = frozenset(fault.name for fault in FAULTS if fault.severity is Severity.PROCESS)


class State(Enum):
    """Where an incident is."""

    UNNOTICED = "unnoticed"
    """It was injected, and nobody has told of it yet."""
    OPEN = "open"
    """Noticed, and nothing was asked for yet."""
    WAITING = "waiting"
    """Its remedy may wait for the next step or the end of the job, and does."""
    REFUSED = "refused"
    """The last word on its remedy is a refusal: a person is needed."""
    REPAIRING = "repairing"
    """A remedy was asked for or is under way."""
    REPAIRED = "repaired"
    """The node is in service again or has a replacement; a fault of one process: its ranks were handed over."""
    NOTED = "noted"
    """The last verdict asks for nothing, and no remedy is under way."""
    WITHDRAWN = "withdrawn"
    """It was over by itself, or was none."""
    REMOVED = "removed"
    """Its node was deleted on request."""


OPEN_STATES = frozenset((State.UNNOTICED, State.OPEN, State.WAITING, State.REFUSED, State.REPAIRING))


@dataclass(frozen=True)
class RemedyStep:
    """One remedy that was asked for, or is due and was refused."""

    time_ns: int
    remedy: str
    way: str
    """runtime, slurm, label or api; ``control-plane`` where the control plane began it; empty where nobody says."""
    outcome: str
    """requested, under way, done or refused."""

    @property
    def is_pending(self) -> bool:
        return self.outcome in ("requested", "under way")


@dataclass(frozen=True)
class Sighting:
    """A line of evidence."""

    time_ns: int
    source: str
    text: str


@dataclass(frozen=True)
class Incident:
    """One node's fault. All seconds count from its beginning, as far as that is known; what is unknown is None."""

    id: str
    """The agent's, or else made of the event that began it."""
    node: str
    fault: str
    names: tuple[str, ...] = ()
    """Every id that it ever had for a reader who knew less; the agent's comes first."""
    host: str = ""
    code: Optional[int] = None
    """Xid or SXid."""
    device: str = ""
    severity: str = ""
    remedy: str = ""
    """What the last verdict asks for."""
    when: str = ""
    """How long that may wait."""
    injected_ns: Optional[int] = None
    signalled_ns: Optional[int] = None
    """When the first sign of it was seen, where somebody says so."""
    noticed_ns: Optional[int] = None
    """The first verdict, of an agent or of the control plane."""
    withdrawn_ns: Optional[int] = None
    removed_ns: Optional[int] = None
    out_ns: Optional[int] = None
    """Since when the node is out of service."""
    restored_ns: Optional[int] = None
    """When the node was replaced, or rebooted."""
    replacement: str = ""
    """Instance id that took the node's place; empty while none has, and after a reboot."""
    repaired_with: str = ""
    """The incident whose repair ended this one, too; empty where the repair is its own."""
    strong_ns: Optional[int] = None
    """When no node was missing, and the job had its spare again."""
    job: str = ""
    """The job that was resumed."""
    job_nodes: tuple[str, ...] = ()
    """Instances that it ran on when it was hit."""
    resumed_ns: Optional[int] = None
    handed_over_ns: Optional[int] = None
    """When the agent handed the ranks of the node over; no report of a job changes it."""
    steps_lost: Optional[int] = None
    """Steps that were done and were thrown away when the job went on."""
    steps_redone: Optional[int] = None
    """Of these, how many have been done again since."""
    stopped_s: Optional[float] = None
    """How long the job stood still."""
    thrown_away_s: Optional[float] = None
    """How long the steps that were thrown away had taken, as far as they were reported."""
    remedies: tuple[RemedyStep, ...] = ()
    evidence: tuple[Sighting, ...] = ()

    @property
    def start_ns(self) -> int:
        """When it began, as far as is known."""
        return min(time for time in (self.injected_ns, self.signalled_ns, self.noticed_ns) if time is not None)

    @property
    def end_ns(self) -> Optional[int]:
        """When it was over; None while it is open."""
        if self.is_open:
            return None
        known = (self.withdrawn_ns, self.removed_ns, self.restored_ns, self.resumed_ns, self.strong_ns, self.noticed_ns)
        return max(time for time in known if time is not None)

    @property
    def state(self) -> State:
        """The last word on it."""
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
        """Whether only a process is broken: its node stays."""
        return self.severity == Severity.PROCESS.value or (not self.severity and self.fault in PROCESS_FAULTS)

    @property
    def is_of_nobody(self) -> bool:
        """Whether there was nothing to repair: it was withdrawn, or asks for nothing."""
        return self.state in (State.WITHDRAWN, State.NOTED)

    @property
    def resumed_by_agent(self) -> bool:
        """Whether the job went on with what the agent handed over, and not by a report of its own."""
        return self.handed_over_ns is not None and self.handed_over_ns == self.resumed_ns

    @property
    def reported_by_job(self) -> "tuple[str, ...]":
        """
        Fields that are known from the log of a job alone, which every user of a node can write.

        They open and close no incident, and count in no price.
        """
        of_job = ["job_nodes", "steps_lost", "steps_redone", "thrown_away_s"]
        of_job += [] if self.resumed_by_agent else ["job", "resumed_ns", "stopped_s"]
        of_job += ["strong_ns"] if self.job else []
        return tuple(name for name in of_job if getattr(self, name) not in (None, "", ()))

    @property
    def asked_ns(self) -> Optional[int]:
        """When a remedy was first asked for."""
        return min((step.time_ns for step in self.remedies if step.outcome != "refused"), default=None)

    @property
    def signal_s(self) -> Optional[float]:
        """None when nobody injected the fault, since its true beginning is then unknown."""
        return None if self.injected_ns is None else self._after_s(self.signalled_ns)

    @property
    def noticed_after_s(self) -> Optional[float]:
        """To the first verdict; None when it is itself the beginning, since the true one is then unknown."""
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
        """Seconds from its beginning to a time."""
        return (time_ns - self.start_ns) / 1e9

    def _after_s(self, time_ns: Optional[int]) -> Optional[float]:
        return None if time_ns is None else self.after_s(time_ns)
