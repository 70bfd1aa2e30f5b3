"""File metadata shared by FSx for Lustre and S3."""

from .posix import DEFAULT_MODE, Posix, of_metadata, to_metadata

__all__ = ["DEFAULT_MODE", "Posix", "of_metadata", "to_metadata"]
