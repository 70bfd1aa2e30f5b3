"""The events that are shown: chosen, put into lines, and those that HyperPod itself tells on AWS."""

from ._choice import Choice, parse_since
from ._lines import EventLine
from ._service import ServiceEvent, read_service_events

__all__ = ["Choice", "EventLine", "ServiceEvent", "parse_since", "read_service_events"]
