"""Interface of resource handlers, and the generic handler. Special types are in `resources`."""

from holdfast.localcloud.aws.cloudformation.resources.handlers.base import (
    Context,
    Handler,
    Machine,
    Made,
    Properties,
    ResourceError,
    Stopped,
    ignore_gone,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers.generic import Generic
from holdfast.localcloud.aws.cloudformation.resources.handlers.shapes import Lost, pick, squeezed, to_shape
from holdfast.localcloud.aws.cloudformation.resources.handlers.typed import service_model, tag_pairs

__all__ = [
    "Context",
    "Generic",
    "Handler",
    "Lost",
    "Machine",
    "Made",
    "Properties",
    "ResourceError",
    "Stopped",
    "ignore_gone",
    "pick",
    "service_model",
    "squeezed",
    "tag_pairs",
    "to_shape",
]
