"""A checksum for what is copied between processes, at several times the speed of a CRC."""

from holdfast_runtime.checksums.rows import ROW_BYTES, checksum_of

__all__ = ["ROW_BYTES", "checksum_of"]
