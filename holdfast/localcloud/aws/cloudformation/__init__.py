"""
The embedded CloudFormation: CloudFormation's API over an engine of our own.

Every resource is made by calling AWS APIs at the embedded endpoint, as CloudFormation's own handlers do.
Serving it over HTTP, and keeping its state on disk, is the host's business.
"""

from holdfast.localcloud.aws.cloudformation.api import CloudFormation

__all__ = ["CloudFormation"]
