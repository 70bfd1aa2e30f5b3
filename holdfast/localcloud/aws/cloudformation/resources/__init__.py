"""
Resource types: what the embedded CloudFormation can make, and how.

Every handler works as CloudFormation's own do, by calling the services' public APIs. A new type is one row in
``_table``; see ``_generic`` for what a row need not say.
"""

from holdfast.localcloud.aws.cloudformation.resources.handlers import Context, Handler, Made, ResourceError, Stopped
from holdfast.localcloud.aws.cloudformation.resources.table import HANDLERS, handler_for, supports

__all__ = ["HANDLERS", "Context", "Handler", "Made", "ResourceError", "Stopped", "handler_for", "supports"]
