"""Interface of resource handlers, and the generic handler. Special types are in `resources`."""

from holdfast.localcloud.aws.cloudformation.resources.handlers.base import (
    LocalMachine,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    Stopped,
    ignore_gone,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers.generic import GenericHandler
from holdfast.localcloud.aws.cloudformation.resources.handlers.shapes import LostProperties, pick, squeezed, to_shape
from holdfast.localcloud.aws.cloudformation.resources.handlers.typed import service_model, tag_pairs

__all__ = [
    "GenericHandler",
    "LocalMachine",
    "LostProperties",
    "Made",
    "Properties",
    "ResourceContext",
    "ResourceError",
    "ResourceHandler",
    "Stopped",
    "ignore_gone",
    "pick",
    "service_model",
    "squeezed",
    "tag_pairs",
    "to_shape",
]
