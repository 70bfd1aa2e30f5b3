"""Cleanup of GuardDuty's resources in a VPC."""

from holdfast_constructs.guard_duty.function import clear, handler
from holdfast_constructs.guard_duty.leftovers import GuardDutyLeftovers

__all__ = ["GuardDutyLeftovers", "clear", "handler"]
