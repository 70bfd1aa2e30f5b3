"""Rehearsals: break a node, and watch the recovery."""

from holdfast.cli.rehearsal.faults import Fault, inject, is_controller, is_switch, lose_switch
from holdfast.cli.rehearsal.jobs import end_late_tasks, rehearse_jobs
from holdfast.cli.rehearsal.planting import end_faults, plant_fault, planted_faults

__all__ = [
    "Fault",
    "end_faults",
    "end_late_tasks",
    "inject",
    "is_controller",
    "is_switch",
    "lose_switch",
    "plant_fault",
    "planted_faults",
    "rehearse_jobs",
]
