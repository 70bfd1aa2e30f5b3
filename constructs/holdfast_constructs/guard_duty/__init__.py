"""What GuardDuty leaves in a VPC, and the function that takes it away with the stack."""

from holdfast_constructs.guard_duty._leftovers import GuardDutyLeftovers

__all__ = ["GuardDutyLeftovers"]
