"""
The node's events on their way to the cluster's log group, from a thread of its own that never keeps the agent waiting.

The file is the queue: how far it was shipped is what the stream holds, so nothing is lost or put twice when the agent
is killed, and nothing grows in memory while CloudWatch is away.
"""

from holdfast_agent.shipping.batches import Batch, Entry, next_batch, stamped
from holdfast_agent.shipping.lines import Line, Lines
from holdfast_agent.shipping.passage import Passage
from holdfast_agent.shipping.shipper import JOBS_TURNS, EventShipper
from holdfast_agent.shipping.state import Position, PositionFile
from holdfast_agent.shipping.stream import LogStream

__all__ = [
    "JOBS_TURNS",
    "Batch",
    "Entry",
    "EventShipper",
    "Line",
    "Lines",
    "LogStream",
    "Passage",
    "Position",
    "PositionFile",
    "next_batch",
    "stamped",
]
