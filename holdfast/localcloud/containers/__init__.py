"""
Containers under Slurm: ``srun --container-image=...`` on the nodes of the local HyperPod.

On AWS these are Pyxis and Enroot, which pull from registries and need user namespaces; docs/adr/0060 says why neither
is here. ``spank/`` is a plugin for Slurm with Pyxis's options, ``start/`` the program that makes a step's container
with runc, ``Store`` the images of one local cloud, ``prepare`` what its nodes need for all of it.
"""

from .building import TOOLS as BUILD_TOOLS
from .building import Buildah, PackagesError, add_image, build, build_training_image, make_base
from .parts import Parts, missing, plugstack_line, prepare
from .store import ImageError, Store, StoredImage

__all__ = [
    "BUILD_TOOLS",
    "Buildah",
    "ImageError",
    "PackagesError",
    "Parts",
    "Store",
    "StoredImage",
    "add_image",
    "build",
    "build_training_image",
    "make_base",
    "missing",
    "plugstack_line",
    "prepare",
]
