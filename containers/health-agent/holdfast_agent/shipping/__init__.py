"""
Event shipping to the cluster's log group, in a thread of its own.

The file is the queue, and its position is what the stream holds: a killed agent loses and repeats nothing, and memory
stays bounded while CloudWatch is away.
"""

from holdfast_agent.shipping.batches import next_batch, stamped
from holdfast_agent.shipping.lines import Line, Lines
from holdfast_agent.shipping.passage import Passage
from holdfast_agent.shipping.shipper import JOBS_PAUSE_S, JOBS_TURNS, EventShipper
from holdfast_agent.shipping.state import PositionFile
from holdfast_agent.shipping.stream import LogStream

__all__ = [
    "JOBS_PAUSE_S",
    "JOBS_TURNS",
    "EventShipper",
    "Line",
    "Lines",
    "LogStream",
    "Passage",
    "PositionFile",
    "next_batch",
    "stamped",
]
