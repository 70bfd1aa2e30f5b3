"""One file of /proc or sysfs, of which one read gives a consistent content."""

import os
from typing import Optional


def read_bytes(path: str, *, most: int) -> Optional[bytes]:
    """
    The beginning of a file, in one read.

    Args:
        path: The file.
        most: How many bytes are wanted at most.

    Returns:
        None where it cannot be read: a process has ended, a device is gone.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, most)
    except OSError:
        return None
    finally:
        os.close(descriptor)
