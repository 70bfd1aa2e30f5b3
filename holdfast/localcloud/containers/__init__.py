"""
Containers under Slurm: ``srun --container-image=...`` on the nodes of the local HyperPod.

On AWS these are Pyxis and Enroot (docs/adr/0060 says why not here). ``spank/`` is a Slurm plugin with Pyxis's options,
``start/`` makes a step's container with runc, ``ImageStore`` has the images, ``prepare`` the parts of nodes.
"""

from .building import TOOLS as BUILD_TOOLS
from .building import Buildah, PackagesError, add_image, build, build_training_image, make_base
from .parts import ContainerParts, missing, plugstack_line, prepare
from .store import ImageError, ImageStore, StoredImage

__all__ = [
    "BUILD_TOOLS",
    "Buildah",
    "ContainerParts",
    "ImageError",
    "ImageStore",
    "PackagesError",
    "StoredImage",
    "add_image",
    "build",
    "build_training_image",
    "make_base",
    "missing",
    "plugstack_line",
    "prepare",
]
