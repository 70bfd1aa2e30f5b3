"""How a running agent is asked what it knows: both ends of a socket, which load nothing else of the agent."""

from holdfast_agent.status.client import ask_status
from holdfast_agent.status.server import StatusSocket

__all__ = ["StatusSocket", "ask_status"]
