"""The agent as a whole: detectors, engine, executor and log in one non-blocking loop."""

from holdfast_agent.service.composition import detectors_of, serve
from holdfast_agent.service.examining import Examined, examined
from holdfast_agent.service.measuring import measuring
from holdfast_agent.service.outbox import Outbox
from holdfast_agent.service.recording import Recording
from holdfast_agent.service.seams import NoHands
from holdfast_agent.service.service import Service, clocks
from holdfast_agent.service.shipping import ship, shippers
from holdfast_agent.service.state import LockedError, StateFile, boot_identity

__all__ = [
    "Examined",
    "LockedError",
    "NoHands",
    "Outbox",
    "Recording",
    "Service",
    "StateFile",
    "boot_identity",
    "clocks",
    "detectors_of",
    "examined",
    "measuring",
    "serve",
    "ship",
    "shippers",
]
