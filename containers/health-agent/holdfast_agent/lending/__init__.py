"""Nodes of elastic jobs, taken back on Slurm when jobs of a higher priority wait; on the controller only."""

from holdfast_agent.lending.lender import Lender
from holdfast_agent.lending.queue import QueuedJob, parse_free, parse_queue, sizes_of
from holdfast_agent.lending.taking import to_tell

__all__ = ["Lender", "QueuedJob", "parse_free", "parse_queue", "sizes_of", "to_tell"]
