"""
Deep checks of idle nodes, stopped as soon as a job needs the node.

Run for a verdict that requires a deep check, and for a node on which jobs of several users failed.
"""

from holdfast_agent.idle.agreement import Agreement
from holdfast_agent.idle.detectors import IdleCheck, JobAgreementDetector
from holdfast_agent.idle.need import needed_by
from holdfast_agent.idle.schedule import IdleSchedule, Look, Turn

__all__ = ["Agreement", "IdleCheck", "IdleSchedule", "JobAgreementDetector", "Look", "Turn", "needed_by"]
