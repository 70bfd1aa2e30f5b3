"""Stand-in of torchvision for scripts of other repositories: small images that follow from their number."""

from pathlib import Path

__path__ = [str(Path(__file__).with_suffix(""))]

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
