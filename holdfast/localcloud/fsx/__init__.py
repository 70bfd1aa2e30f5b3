"""File metadata shared by FSx for Lustre and S3."""

from .posix import Posix, of_metadata, to_metadata

__all__ = ["Posix", "of_metadata", "to_metadata"]
