"""
What EKS's add-ons bring into a cluster that really runs: their objects, how they do, and what stands in for what.

When an add-on is installed or removed is for `aws.eks`. An add-on without a stand-in brings nothing, and that is said.
"""

from holdfast.localcloud.kubernetes.addons.health import lacking, workloads
from holdfast.localcloud.kubernetes.addons.installation import ConflictError, Place, install, is_well, remove
from holdfast.localcloud.kubernetes.addons.objects import Facts, images, objects, release_objects, stand_in

__all__ = [
    "ConflictError",
    "Facts",
    "Place",
    "images",
    "install",
    "is_well",
    "lacking",
    "objects",
    "release_objects",
    "remove",
    "stand_in",
    "workloads",
]
