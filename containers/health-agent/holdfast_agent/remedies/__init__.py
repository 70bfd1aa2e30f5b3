"""
Remedies: a node's agent reports its verdict as the mark of its node, and one process decides for all nodes.

Decisions are pure (``holdfast_common.decisions``); ``Decider`` carries them out.
"""

from holdfast_agent.remedies.api_requests import ApiRequests
from holdfast_agent.remedies.composing import decider_of, marks_of
from holdfast_agent.remedies.decider import Decider
from holdfast_agent.remedies.kubernetes_marks import KubernetesMarks
from holdfast_agent.remedies.leaving import Departure, leave_request
from holdfast_agent.remedies.node_mark import NodeMark
from holdfast_agent.remedies.remediator import Remediator
from holdfast_agent.remedies.seams import RefusedError
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_marks import SlurmMarks, foreign_reason

__all__ = [
    "ApiRequests",
    "Decider",
    "Departure",
    "KubernetesMarks",
    "NodeMark",
    "RefusedError",
    "Remediator",
    "RemedySettings",
    "SlurmMarks",
    "decider_of",
    "foreign_reason",
    "leave_request",
    "marks_of",
]
