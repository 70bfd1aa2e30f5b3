"""What GuardDuty leaves in a VPC, and the function that takes it away with the stack."""

from holdfast_constructs.guard_duty.function import clear, handler
from holdfast_constructs.guard_duty.leftovers import GuardDutyLeftovers

__all__ = ["GuardDutyLeftovers", "clear", "handler"]
