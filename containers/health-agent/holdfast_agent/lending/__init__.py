"""Lent nodes: take them back from elastic jobs on Slurm when jobs of higher priority wait; controller only."""

from holdfast_agent.lending.lender import Lender
from holdfast_agent.lending.queue import QueuedJob, parse_free, parse_queue
from holdfast_agent.lending.selection import tasks_to_end

__all__ = ["Lender", "QueuedJob", "parse_free", "parse_queue", "tasks_to_end"]
