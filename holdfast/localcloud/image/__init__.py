"""
The image of a node: what HyperPod's AMI has and this machine has not, as one directory for all nodes.

    image = build(fleet.directory / "images", orchestrator="slurm")
    NodeSpec(..., image=image.path, mounts=(*image.mounts, ...))

The directory lies over the machine's root and under what a node writes. It has Slurm's folders and units, systemctl,
the AMI's Python, and stand-ins for what has no meaning here; ``image.notes`` says what it took from the machine, and
the nodes show it in /etc/holdfast-image. Nothing in it is of one node or one cluster. ``stand_ins.yaml`` lists what
is not real.
"""

from ._build import Image, build
from ._environment import environment_programs
from ._layer import DEVICES, MOST_GPUS
from ._stand_ins import StandIn, stand_ins

__all__ = ["DEVICES", "MOST_GPUS", "Image", "StandIn", "build", "environment_programs", "stand_ins"]
