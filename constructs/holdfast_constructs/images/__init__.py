"""Container images: a repository, and references that always mean the same bytes."""

from holdfast_constructs.images.ecr import ContainerImage, ImageRepository

__all__ = ["ContainerImage", "ImageRepository"]
