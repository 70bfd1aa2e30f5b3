"""Files that the kernel makes up while they are read: /proc and sysfs."""

from holdfast_agent.kernel_files.reading import read_bytes

__all__ = ["read_bytes"]
