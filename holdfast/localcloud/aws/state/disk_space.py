"""
Free disk space, checked before a change.

A change is saved a moment after its answer, so a reserve stays free. Without it the answer is 507 (RFC 4918,
"Insufficient Storage"), which no SDK retries by itself.
"""

import os
from collections.abc import Callable, Container
from pathlib import Path

RESERVE_BYTES = 64 << 20
READING = ("Describe", "List", "Get", "Head", "Lookup", "Filter", "Search", "BatchGet", "Simulate", "Decrypt")
FREEING = ("Delete", "BatchDelete", "Abort", "Terminate", "Release", "Detach", "Remove", "Untag", "Stop", "Cancel")


class DiskSpace:
    """Free space, in bytes, on the file system of ``folder``."""

    def __init__(self, *, folder: Path, free: Callable[[Path], int] | None = None) -> None:
        self._folder, self._free = folder, free

    def refusal(self, *, desired: int) -> str:
        """Return why ``desired`` more bytes cannot be saved, or ""."""
        free = (self._free or free_bytes)(self._folder)
        if free - desired >= RESERVE_BYTES:
            return ""
        return (
            f"the disk of {self._folder} has {free >> 20} MiB free, and {RESERVE_BYTES >> 20} MiB"
            f"{f' beside the {desired >> 20} MiB of the request' if desired >> 20 else ''} are needed to save a "
            "change; free some space"
        )


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def is_change(*, method: str, operation: str, query: Container[str] = ()) -> bool:
    """Return True if a request adds state; deletions, such as S3's ``POST ?delete``, free space."""
    if method in ("GET", "HEAD", "DELETE", "OPTIONS") or (method == "POST" and "delete" in query):
        return False
    return not operation.startswith((*READING, *FREEING))
