"""
Drives the membership protocol of this launcher: agreement, the witness, hand-over, another size, the journal, and the
end of the run. Decisions are in `membership`; ``part`` has what all parts of a launcher share.
"""

from holdfast_runtime.launcher.generation.agreement import PROPOSAL_PER_LAUNCHER_S, Agreement, Effects
from holdfast_runtime.launcher.generation.building import Building
from holdfast_runtime.launcher.generation.departure import Departure
from holdfast_runtime.launcher.generation.ending import Ending
from holdfast_runtime.launcher.generation.journal import Journal, describe_view, ranges
from holdfast_runtime.launcher.generation.noticing import Notice
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.launcher.generation.record import SILENT_AFTER_S, Record
from holdfast_runtime.launcher.generation.resizing import Resizing
from holdfast_runtime.launcher.generation.witnessing import Witnessing

__all__ = [
    "PROPOSAL_PER_LAUNCHER_S",
    "SILENT_AFTER_S",
    "Agreement",
    "Building",
    "Context",
    "Departure",
    "Effects",
    "Ending",
    "Journal",
    "Notice",
    "Part",
    "Record",
    "Resizing",
    "Witnessing",
    "describe_view",
    "ranges",
]
