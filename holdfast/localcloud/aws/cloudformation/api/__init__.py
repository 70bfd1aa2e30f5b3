"""CloudFormation's operations: validate requests, start and read deployments. The work on stacks is in `deployment`."""

from holdfast.localcloud.aws.cloudformation.api.service import CloudFormation

__all__ = ["CloudFormation"]
