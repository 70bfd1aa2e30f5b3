"""
Container images on the nodes of a local EKS.

Nodes pull from a small registry of the control plane: a configuration and a layer of a few kilobytes. Files are mounted
when a container starts: from an unpacked image of ``holdfast images``, or, for stand-ins, from the node. So an image of
10 GB exists once, and its pods start at once. ``holdfast-runc``, between containerd and runc, mounts.
"""

from .catalog import ImageCatalog
from .layers import Entry, Image, make_image
from .node_root import STAND_INS, NodeRoot
from .on_nodes import REGISTRIES, RUNTIME, SANDBOX_IMAGE, node_files, node_mounts
from .registry import PORT, Registry
from .stand_ins import StandIn, StandIns, stand_ins

__all__ = [
    "PORT",
    "REGISTRIES",
    "RUNTIME",
    "SANDBOX_IMAGE",
    "STAND_INS",
    "Entry",
    "Image",
    "ImageCatalog",
    "NodeRoot",
    "Registry",
    "StandIn",
    "StandIns",
    "make_image",
    "node_files",
    "node_mounts",
    "stand_ins",
]
