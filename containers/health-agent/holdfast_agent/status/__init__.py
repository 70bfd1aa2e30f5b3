"""Status socket of a running agent; loads nothing else of it."""

from holdfast_agent.status.client import ask_status
from holdfast_agent.status.server import StatusSocket

__all__ = ["StatusSocket", "ask_status"]
