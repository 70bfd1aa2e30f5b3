"""What an app refers to and does not own: lifecycle scripts, EKS clusters, clusters that are looked up."""

from holdfast_constructs.existing._cluster import looked_up
from holdfast_constructs.existing._scripts import ExistingScripts

__all__ = ["ExistingScripts", "looked_up"]
