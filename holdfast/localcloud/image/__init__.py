"""
Image of a node: HyperPod's AMI, as one directory for all nodes.

    image = build(fleet.directory / "images", orchestrator="slurm")
    NodeSpec(..., image=image.path, mounts=(*image.mounts, ...))

The directory lies over the machine's root and under a node's writes. It has Slurm's folders and units, systemctl, the
AMI's Python, and stand-ins (``stand_ins.yaml``). ``image.notes`` names what comes from the machine, in
/etc/holdfast-image.
"""

from holdfast.localcloud.image.interpreter import Interpreter, find
from holdfast.localcloud.image.layers import LayerEntry, __file__, layer

from .environment import ORIGINALS_AT as ENVIRONMENT_PROGRAMS
from .environment import TRAINING_ENVIRONMENT, environment_programs
from .layers import DEVICES, MOST_GPUS, START_ENABLED
from .rendering import NodeImage, build
from .slurm import NO_ACCOUNTING
from .stand_in import stand_ins

__all__ = [
    "DEVICES",
    "ENVIRONMENT_PROGRAMS",
    "MOST_GPUS",
    "NO_ACCOUNTING",
    "START_ENABLED",
    "TRAINING_ENVIRONMENT",
    "Interpreter",
    "LayerEntry",
    "NodeImage",
    "__file__",
    "build",
    "environment_programs",
    "find",
    "layer",
    "stand_ins",
]
