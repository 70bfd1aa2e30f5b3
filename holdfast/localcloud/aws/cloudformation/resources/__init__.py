"""Resource types of the embedded CloudFormation: handlers that call public APIs. A new type is one row in `table`."""

from holdfast.localcloud.aws.cloudformation.resources.table import HANDLERS, handler_for, supports

__all__ = ["HANDLERS", "handler_for", "supports"]
