"""
Drives the membership protocol of this launcher: agreement, the witness, the journal, and the end of the run. What is
decided is for `membership`.
"""

from holdfast_runtime.launcher.generation.agreement import PROPOSAL_PER_LAUNCHER_S, Agreement, Effects
from holdfast_runtime.launcher.generation.building import Building
from holdfast_runtime.launcher.generation.ending import Ending
from holdfast_runtime.launcher.generation.journal import Journal, describe_view, ranges
from holdfast_runtime.launcher.generation.noticing import Notice
from holdfast_runtime.launcher.generation.resizing import Resizing
from holdfast_runtime.launcher.generation.witnessing import Asks, Witnessing

__all__ = [
    "PROPOSAL_PER_LAUNCHER_S",
    "Agreement",
    "Asks",
    "Building",
    "Effects",
    "Ending",
    "Journal",
    "Notice",
    "Resizing",
    "Witnessing",
    "describe_view",
    "ranges",
]
