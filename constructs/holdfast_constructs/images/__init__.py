"""Container images: a repository, and immutable references."""

from holdfast_constructs.images.ecr import ContainerImage, ImageRepository

__all__ = ["ContainerImage", "ImageRepository"]
