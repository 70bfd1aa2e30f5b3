"""
Start and end times of resources in a deployment, in simulated time.

CloudFormation orders two resources only where one refers to the other or depends on it; other work overlaps, as
`courses` describes.
"""

from holdfast.localcloud.aws.cloudformation.timing.courses import Course, course
from holdfast.localcloud.aws.cloudformation.timing.graph import Cancelled, run, run_in_time

__all__ = ["Cancelled", "Course", "course", "run", "run_in_time"]
