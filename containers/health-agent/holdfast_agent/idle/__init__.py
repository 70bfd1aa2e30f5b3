"""
What is done with a node that nobody needs: it is tried out again, and left at once when somebody needs it.

A verdict that asks for a deep check has it here, and so has a node whose processes ended in jobs of several users.
"""

from holdfast_agent.idle.agreement import Agreement
from holdfast_agent.idle.deciding import IdleTime, Look, Turn
from holdfast_agent.idle.detectors import IdleCheck, JobsAgree
from holdfast_agent.idle.need import needed_by

__all__ = ["Agreement", "IdleCheck", "IdleTime", "JobsAgree", "Look", "Turn", "needed_by"]
