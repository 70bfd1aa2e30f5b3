"""
Resource types of the embedded CloudFormation.

Handlers call the services' public APIs, as CloudFormation's own do. A new type is one row in `table`.
"""

from holdfast.localcloud.aws.cloudformation.resources.table import HANDLERS, handler_for, supports

__all__ = ["HANDLERS", "handler_for", "supports"]
