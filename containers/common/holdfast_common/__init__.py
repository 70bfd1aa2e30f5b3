"""What every part of Holdfast shares: the event schema, the timeline computed from it, the fault taxonomy.

Standard library only and Python 3.9, because it runs inside every image and on nodes before anything is installed:
Amazon Linux 2023, of which HyperPod's EKS nodes are made, has no newer one.
"""

from typing import TYPE_CHECKING, Any

from holdfast_common import kinds
from holdfast_common._log import EventLog, events_log_group
from holdfast_common._schema import SOURCES, VERSION, Detail, EventError

if TYPE_CHECKING:
    from holdfast_common._events import Event, ParsedEvents, parse_events
    from holdfast_common._faults import FAULTS, Fault, Remedy, Severity, fault_named
    from holdfast_common._incidents import Incident
    from holdfast_common._timeline import JobTimeline, Phase, Timeline, timeline

__all__ = [
    "FAULTS",
    "SOURCES",
    "VERSION",
    "Detail",
    "Event",
    "EventError",
    "EventLog",
    "Fault",
    "Incident",
    "JobTimeline",
    "ParsedEvents",
    "Phase",
    "Remedy",
    "Severity",
    "Timeline",
    "events_log_group",
    "fault_named",
    "kinds",
    "parse_events",
    "timeline",
]

_FROM = {
    **dict.fromkeys(("Event", "ParsedEvents", "parse_events"), "_events"),
    **dict.fromkeys(("FAULTS", "Fault", "Remedy", "Severity", "fault_named"), "_faults"),
    "Incident": "_incidents",
    **dict.fromkeys(("JobTimeline", "Phase", "Timeline", "timeline"), "_timeline"),
}


def __getattr__(name: str) -> Any:
    """What only readers of events use is loaded on first use: a node that writes them starts without it."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
