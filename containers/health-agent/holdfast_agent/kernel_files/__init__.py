"""Files that the kernel generates on read: /proc and sysfs."""

from holdfast_agent.kernel_files.reading import read_bytes

__all__ = ["read_bytes"]
