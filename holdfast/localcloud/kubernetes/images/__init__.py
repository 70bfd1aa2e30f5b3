"""
Container images on the nodes of a local EKS.

Nodes pull from a small registry that the control plane serves. What is pulled is a configuration and a layer of a few
kilobytes; the files themselves are mounted from a folder when a container starts: from an unpacked image of the store
that ``holdfast images`` keeps, or, for stand-ins, from the node. So an image of 10 GB lies on this machine once, and
its pods start at once. ``holdfast-runc`` does the mounting, between containerd and runc.
"""

from .layers import Entry, Image, make_image
from .node_root import STAND_INS, NodeRoot
from .offered import Offered
from .on_nodes import IMAGES_AT, REGISTRIES, RUNTIME, SANDBOX_IMAGE, node_files, node_mounts
from .registry import PORT, Registry
from .stand_ins import StandIn, StandIns, stand_ins

__all__ = [
    "IMAGES_AT",
    "PORT",
    "REGISTRIES",
    "RUNTIME",
    "SANDBOX_IMAGE",
    "STAND_INS",
    "Entry",
    "Image",
    "NodeRoot",
    "Offered",
    "Registry",
    "StandIn",
    "StandIns",
    "make_image",
    "node_files",
    "node_mounts",
    "stand_ins",
]
