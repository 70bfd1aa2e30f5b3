"""
The CloudFormation registry: which resource types a region has, and what their schemas allow.

The schemas are those that CloudFormation itself publishes; cfn-lint carries a dated copy of each region's.
"""

from holdfast.localcloud.aws.cloudformation.registry._foresight import foreseen
from holdfast.localcloud.aws.cloudformation.registry._schemas import available, dated, schema
from holdfast.localcloud.aws.cloudformation.registry._validation import Violation, violations

__all__ = ["Violation", "available", "dated", "foreseen", "schema", "violations"]
