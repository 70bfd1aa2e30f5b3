"""The embedded CloudFormation: its API over an engine of our own, which creates every resource by calling AWS APIs."""

from holdfast.localcloud.aws.cloudformation.api import CloudFormation

__all__ = ["CloudFormation"]
