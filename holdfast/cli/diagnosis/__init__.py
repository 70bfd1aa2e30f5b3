"""Decisions of ``holdfast why``: evidence in, findings out. Pure."""

from holdfast.cli.diagnosis.evidence import (
    Change,
    DrainedNode,
    Evidence,
    FailureSeen,
    Holder,
    Output,
    Pace,
    PendingJob,
    Process,
    Rank,
)
from holdfast.cli.diagnosis.findings import Diagnosis, StackOf, Verdict, WaitingRank, diagnose
from holdfast.cli.diagnosis.numbers import side_by_side
from holdfast.cli.diagnosis.probed import NodeProbe, parse_probe, ranks_of
from holdfast.cli.diagnosis.shape import pace_of
from holdfast.cli.diagnosis.spans import shown_span
from holdfast.cli.diagnosis.stacks import Frame, doing, doing_by_output, parse_stack, place, shown_frames
from holdfast.cli.diagnosis.suspects import Suspect

__all__ = [
    "Change",
    "Diagnosis",
    "DrainedNode",
    "Evidence",
    "FailureSeen",
    "Frame",
    "Holder",
    "NodeProbe",
    "Output",
    "Pace",
    "PendingJob",
    "Process",
    "Rank",
    "StackOf",
    "Suspect",
    "Verdict",
    "WaitingRank",
    "diagnose",
    "doing",
    "doing_by_output",
    "pace_of",
    "parse_probe",
    "parse_stack",
    "place",
    "ranks_of",
    "shown_frames",
    "shown_span",
    "side_by_side",
]
