"""Rules about the EKS control plane, add-ons, scheduling and EKS clusters in templates (3xx)."""

from holdfast.validation.rules.eks import (  # noqa: F401 - each registers its rules
    access,
    addon_resources,
    addons,
    clusters,
    control_plane,
    lookups,
    node_pools,
    scheduling,
    training_operator,
    versions,
)
from holdfast.validation.rules.eks.lookups import network_of, vpcs_of

__all__ = ["network_of", "vpcs_of"]
