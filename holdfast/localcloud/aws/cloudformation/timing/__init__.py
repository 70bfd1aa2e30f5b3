"""
When resources of a deployment begin and when they can be used, in time that nobody waits for.

CloudFormation promises an order between two resources only where one refers to the other or depends on it. Here, too,
what is not ordered overlaps: see `courses`.
"""

from holdfast.localcloud.aws.cloudformation.timing.courses import Course, course
from holdfast.localcloud.aws.cloudformation.timing.graph import Cancelled, Switch, run, run_in_time

__all__ = ["Cancelled", "Course", "Switch", "course", "run", "run_in_time"]
