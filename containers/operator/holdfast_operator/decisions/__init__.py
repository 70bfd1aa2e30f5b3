"""Decisions about one job: actions and status from its pods and nodes. Pure."""

from holdfast_operator.decisions.actions import Action, CreatePod, Decision, DeleteJob, DeletePod
from holdfast_operator.decisions.decide import decide
from holdfast_operator.decisions.evidence import STOPPED, failure_of, repeats, stop_of, stops
from holdfast_operator.decisions.facts import SCHEDULABLE, NodeFacts, PodFacts

__all__ = [
    "SCHEDULABLE",
    "STOPPED",
    "Action",
    "CreatePod",
    "Decision",
    "DeleteJob",
    "DeletePod",
    "NodeFacts",
    "PodFacts",
    "decide",
    "failure_of",
    "repeats",
    "stop_of",
    "stops",
]
