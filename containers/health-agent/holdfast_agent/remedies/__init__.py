"""
Remedies: hand over ranks and request the node, beside HyperPod's own agent.

Decisions are pure (``Plan``, the breaker); actions on the node run in the executor, a small process that can do
a few things to this node only.
"""

from typing import TYPE_CHECKING, Any

from holdfast_agent.remedies.breaker import Mark, Ruling, Stage, ruling
from holdfast_agent.remedies.hands_line import HandsLine
from holdfast_agent.remedies.leaving import Departure, leave_request
from holdfast_agent.remedies.remediator import Remediator
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.words import Answer, Job, Request, View, WordsError, parse_request

if TYPE_CHECKING:
    from holdfast_agent.remedies.api_way import ApiAsker
    from holdfast_agent.remedies.hands import Hands
    from holdfast_agent.remedies.kubernetes_api import KubernetesApi
    from holdfast_agent.remedies.kubernetes_ways import KubernetesBook, LabelAsker
    from holdfast_agent.remedies.slurm_ways import foreign_reason

__all__ = [
    "Answer",
    "ApiAsker",
    "Departure",
    "Hands",
    "HandsLine",
    "Job",
    "KubernetesApi",
    "KubernetesBook",
    "LabelAsker",
    "Mark",
    "Remediator",
    "RemedySettings",
    "Request",
    "Ruling",
    "Stage",
    "View",
    "WordsError",
    "foreign_reason",
    "leave_request",
    "parse_request",
    "ruling",
]


_OF_THE_HANDS = {
    "ApiAsker": "api_way",
    "Hands": "hands",
    "KubernetesApi": "kubernetes_api",
    "KubernetesBook": "kubernetes_ways",
    "LabelAsker": "kubernetes_ways",
    "foreign_reason": "slurm_ways",
}


def __getattr__(name: str) -> Any:
    """Load the executor lazily: the agent does not need clients of AWS and Kubernetes."""
    if name not in _OF_THE_HANDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_OF_THE_HANDS[name]}"), name)
