"""Stand-in of torchvision for scripts of other repositories: small images that follow from their number."""

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
