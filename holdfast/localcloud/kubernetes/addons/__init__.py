"""EKS add-ons in a real cluster: objects, health, stand-ins. `aws.eks` decides when they are installed and removed."""

from holdfast.localcloud.kubernetes.addons.health import workloads
from holdfast.localcloud.kubernetes.addons.installation import ConflictError, install, is_well, remove
from holdfast.localcloud.kubernetes.addons.objects import Facts, images, objects, release_objects, stand_in

__all__ = [
    "ConflictError",
    "Facts",
    "images",
    "install",
    "is_well",
    "objects",
    "release_objects",
    "remove",
    "stand_in",
    "workloads",
]
