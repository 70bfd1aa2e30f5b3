"""Decisions that more than one process makes, pure: remedies (claim, hand over, request, breaker) and sizes."""

from holdfast_common.decisions.lending import Elastic, Waiting, elastic_nodes, shares
from holdfast_common.decisions.remedies import NodeState, Order, Report, Stage, Step, decide, depends_on_jobs

__all__ = [
    "Elastic",
    "NodeState",
    "Order",
    "Report",
    "Stage",
    "Step",
    "Waiting",
    "decide",
    "depends_on_jobs",
    "elastic_nodes",
    "shares",
]
