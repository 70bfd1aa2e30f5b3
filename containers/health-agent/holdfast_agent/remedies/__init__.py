"""
Remedies: a node's agent reports its verdict as the mark of its node, and one process decides for all nodes.

Decisions are pure (``holdfast_common.decisions``); ``Decider`` carries them out.
"""

from typing import TYPE_CHECKING, Any

from holdfast_agent.remedies.leaving import Departure, leave_request
from holdfast_agent.remedies.remediator import Remediator
from holdfast_agent.remedies.settings import RemedySettings

if TYPE_CHECKING:
    from holdfast_agent.remedies.api_requests import ApiRequests
    from holdfast_agent.remedies.composing import decider_of, marks_of
    from holdfast_agent.remedies.decider import Decider
    from holdfast_agent.remedies.kubernetes_marks import KubernetesMarks
    from holdfast_agent.remedies.node_mark import NodeMark
    from holdfast_agent.remedies.seams import RefusedError
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

_ON_DEMAND = {
    "ApiRequests": "api_requests",
    "Decider": "decider",
    "KubernetesMarks": "kubernetes_marks",
    "NodeMark": "node_mark",
    "RefusedError": "seams",
    "SlurmMarks": "slurm_marks",
    "decider_of": "composing",
    "foreign_reason": "slurm_marks",
    "marks_of": "composing",
}


def __getattr__(name: str) -> Any:
    """Load clients of AWS and Kubernetes on demand."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
