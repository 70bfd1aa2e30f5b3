"""Rules about the EKS control plane, add-ons, scheduling and EKS clusters in templates (3xx)."""

from holdfast.validation.rules.eks import (  # noqa: F401 - each registers its rules
    addons,
    clusters,
    control_plane,
    scheduling,
)

__all__: list[str] = []
