"""
The job on this node: its processes, started and seen to die, what each last reported, and the committed view. No
decision is made here.
"""

from holdfast_runtime.launcher.ranks.forker import Forker, ForkError, end_orphans
from holdfast_runtime.launcher.ranks.process_state import holds_device, is_blocked, kernel_state
from holdfast_runtime.launcher.ranks.processes import PR_SET_CHILD_SUBREAPER, Process, Processes, Program
from holdfast_runtime.launcher.ranks.signals import forward, has_handler
from holdfast_runtime.launcher.ranks.slots import LAST_ONES, LocalSlot, LocalSlots
from holdfast_runtime.launcher.ranks.stacks import DUMP_S, stacks_of
from holdfast_runtime.launcher.ranks.views import rank_views

__all__ = [
    "DUMP_S",
    "LAST_ONES",
    "PR_SET_CHILD_SUBREAPER",
    "ForkError",
    "Forker",
    "LocalSlot",
    "LocalSlots",
    "Process",
    "Processes",
    "Program",
    "end_orphans",
    "forward",
    "has_handler",
    "holds_device",
    "is_blocked",
    "kernel_state",
    "rank_views",
    "stacks_of",
]
