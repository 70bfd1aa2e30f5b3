"""
CloudFormation's operations: which requests are allowed, what they start and what they read. The work on stacks is in
`deployment`.
"""

from holdfast.localcloud.aws.cloudformation.api.service import CloudFormation

__all__ = ["CloudFormation"]
