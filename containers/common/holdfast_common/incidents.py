"""Incidents: a node was broken, was noticed to be, was restored, and its job ran again. Part of the timeline."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from holdfast_common import kinds
from holdfast_common.events import Event
from holdfast_common.faults import FAULTS, Severity

_PROCESS_FAULTS = frozenset(fault.name for fault in FAULTS if fault.severity is Severity.PROCESS)
_NOTICES = (kinds.NODE_LOST, kinds.NODE_FAILED)


@dataclass(frozen=True)
class Incident:
    """One node's fault. All seconds count from its beginning: the injection, or the notice when nobody injected it."""

    node: str
    fault: str
    injected_ns: Optional[int] = None
    noticed_ns: Optional[int] = None
    restored_ns: Optional[int] = None
    """When the node was replaced, or rebooted."""
    replacement: str = ""
    """Instance id that took the node's place; empty while none has, and after a reboot."""
    job: str = ""
    """The job that was resumed."""
    resumed_ns: Optional[int] = None

    @property
    def start_ns(self) -> int:
        """When it began, as far as is known."""
        return min(time for time in (self.injected_ns, self.noticed_ns) if time is not None)

    @property
    def noticed_after_s(self) -> Optional[float]:
        """None when nobody injected the fault, since its true beginning is then unknown."""
        return None if self.injected_ns is None else self._after_s(self.noticed_ns)

    @property
    def restored_after_s(self) -> Optional[float]:
        return self._after_s(self.restored_ns)

    @property
    def resumed_after_s(self) -> Optional[float]:
        return self._after_s(self.resumed_ns)

    def _after_s(self, time_ns: Optional[int]) -> Optional[float]:
        return None if time_ns is None else (time_ns - self.start_ns) / 1e9


def incidents_of(ordered: Iterable[Event]) -> tuple[Incident, ...]:
    """The incidents of events sorted by time."""
    incidents: list[Incident] = []
    nodes_of_job: dict[str, frozenset[str]] = {}
    seen_jobs: set[str] = set()
    for event in ordered:
        if event.kind == kinds.FAULT_INJECTED:
            _inject(incidents, event)
        elif event.kind in _NOTICES:
            _notice(incidents, event)
        elif event.kind == kinds.NODE_REPLACED:
            _restore(incidents, event, *_replacement(event))
        elif event.kind == kinds.NODE_REBOOTED:
            _restore(incidents, event, event.node, "")
        elif event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED):
            if event.kind == kinds.JOB_RESUMED or event.job in seen_jobs:
                _resume(incidents, event, nodes_of_job.get(event.job))
            seen_jobs.add(event.job)
            nodes_of_job[event.job] = frozenset(str(event.detail.get("nodes", "")).split(",")) - {""}
    return tuple(sorted(incidents, key=lambda incident: incident.start_ns))


def _replacement(event: Event) -> tuple[str, str]:
    """Old and new instance id: the event is about the new one, or about the old one and names the new."""
    if "replaces" in event.detail:
        return str(event.detail["replaces"]), event.node
    return event.node, str(event.detail.get("replacement", ""))


def _open(incidents: Sequence[Incident], node: str) -> Optional[int]:
    """The incident of the node that is not over; a fault of one process is none of the node's."""
    for index, incident in enumerate(incidents):
        if incident.node == node and incident.restored_ns is None and incident.fault not in _PROCESS_FAULTS:
            return index
    return None


def _inject(incidents: list[Incident], event: Event) -> None:
    """A new incident, unless the fault was noticed before its injection was written down, or was injected twice."""
    index = None if event.fault in _PROCESS_FAULTS else _open(incidents, event.node)
    if index is None:
        incidents.append(Incident(node=event.node, fault=event.fault, injected_ns=event.time_ns))
    elif incidents[index].injected_ns is None:
        incidents[index] = replace(incidents[index], injected_ns=event.time_ns, fault=event.fault)


def _notice(incidents: list[Incident], event: Event) -> None:
    index = _open(incidents, event.node)
    if index is None:
        incidents.append(Incident(node=event.node, fault=event.fault, noticed_ns=event.time_ns))
    elif incidents[index].noticed_ns is None:
        known = incidents[index]
        incidents[index] = replace(known, noticed_ns=event.time_ns, fault=known.fault or event.fault)


def _restore(incidents: list[Incident], event: Event, node: str, replacement: str) -> None:
    index = _open(incidents, node)
    if index is not None:
        incidents[index] = replace(incidents[index], restored_ns=event.time_ns, replacement=replacement)


def _resume(incidents: list[Incident], event: Event, nodes_before: Optional[frozenset[str]]) -> None:
    """A job that runs again ends every incident that hit it; when its nodes are unknown, every one still open."""
    for index, incident in enumerate(incidents):
        if incident.resumed_ns is None and (not nodes_before or incident.node in nodes_before):
            incidents[index] = replace(incident, resumed_ns=event.time_ns, job=event.job)
