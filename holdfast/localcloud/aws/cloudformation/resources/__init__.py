"""
Resource types: what the embedded CloudFormation can make, and how.

Every handler works as CloudFormation's own do, by calling the services' public APIs. A new type is one row in
`table`; see `handlers.generic` for what a row need not say.
"""

from holdfast.localcloud.aws.cloudformation.resources.table import HANDLERS, handler_for, supports

__all__ = ["HANDLERS", "handler_for", "supports"]
