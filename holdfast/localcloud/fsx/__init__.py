"""What Amazon FSx for Lustre and S3 tell each other of a file beside its content."""

from .posix import DEFAULT_MODE, Posix, of_metadata, to_metadata

__all__ = ["DEFAULT_MODE", "Posix", "of_metadata", "to_metadata"]
