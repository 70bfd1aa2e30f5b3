"""Read of a /proc or sysfs file in one call, which makes it consistent."""

import os
from typing import Optional


def read_bytes(path: str, *, most: int) -> Optional[bytes]:
    """Return up to ``most`` bytes; None where unreadable: a process has exited, a device is gone."""
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
