"""The agent as a whole: detectors, engine, remedies and log in one non-blocking loop."""

from holdfast_agent.service.composition import detectors_of, serve
from holdfast_agent.service.interfaces import NoRemedies
from holdfast_agent.service.metrics_threads import measuring
from holdfast_agent.service.outbox import Outbox
from holdfast_agent.service.service import Service, clocks
from holdfast_agent.service.shipping import ship, shippers
from holdfast_agent.service.single_check import CheckResult, check_once
from holdfast_agent.service.state import LockedError, StateFile

__all__ = [
    "CheckResult",
    "LockedError",
    "NoRemedies",
    "Outbox",
    "Service",
    "StateFile",
    "check_once",
    "clocks",
    "detectors_of",
    "measuring",
    "serve",
    "ship",
    "shippers",
]
