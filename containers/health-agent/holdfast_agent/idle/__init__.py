"""
Deep checks of idle nodes, stopped as soon as a job needs the node.

Run for a verdict that requires a deep check, and for a node on which jobs of several users failed.
"""

from holdfast_agent.idle.agreement import Agreement
from holdfast_agent.idle.deciding import IdleTime, Look, Turn
from holdfast_agent.idle.detectors import IdleCheck, JobsAgree
from holdfast_agent.idle.need import needed_by

__all__ = ["Agreement", "IdleCheck", "IdleTime", "JobsAgree", "Look", "Turn", "needed_by"]
