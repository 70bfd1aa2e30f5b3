"""A checksum for what is copied between processes, and for states that have to be equal."""

from holdfast_runtime.checksums.xxh3 import checksum_of

__all__ = ["checksum_of"]
