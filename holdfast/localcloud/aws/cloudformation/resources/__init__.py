"""
Resource types: what the embedded CloudFormation can make, and how.

Every handler works as CloudFormation's own do, by calling the services' public APIs. A new type is one row in
``_table``; see ``_generic`` for what a row need not say.
"""

from holdfast.localcloud.aws.cloudformation.resources._base import (
    Context,
    Handler,
    Made,
    ResourceError,
    Stopped,
)
from holdfast.localcloud.aws.cloudformation.resources._table import handler_for, supports

__all__ = ["Context", "Handler", "Made", "ResourceError", "Stopped", "handler_for", "supports"]
