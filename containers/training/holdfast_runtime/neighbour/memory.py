"""
Memory of another process of this host, read where it is: a copy that takes neither a socket nor that process's time.

Linux allows it between processes of one user, unless Yama or a filter of system calls forbids it; then state goes over
the connection, as between hosts.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

BOOT = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/pid")


class _Part(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class NotReadableError(ConnectionError):
    """The memory of the other process cannot be read from this one."""


@cache
def this_host() -> str:
    """What processes have in common whose numbers mean the same; empty where it is not known."""
    try:
        return f"{BOOT.read_text().strip()} {NAMESPACE.stat().st_ino}"
    except OSError:
        return ""


@cache
def _process_vm_readv() -> Any:
    found = ctypes.CDLL(None, use_errno=True).process_vm_readv
    pointer, count = ctypes.c_void_p, ctypes.c_ulong
    found.restype, found.argtypes = ctypes.c_ssize_t, (ctypes.c_int, pointer, count, pointer, count, count)
    return found


def read_memory(pid: int, addresses: Sequence[range], into: Sequence[memoryview]) -> None:
    """
    Copy from a process of this host.

    Args:
        addresses: As many as there are pieces of memory to copy into, and as long as these; 1,024 at most.

    Raises:
        NotReadableError: it is not allowed, or the process is gone.
    """
    parts = _Part * len(into)
    local = parts(*[_Part(ctypes.addressof(ctypes.c_char.from_buffer(piece)), len(piece)) for piece in into])
    remote = parts(*[_Part(each.start, len(each)) for each in addresses])
    count = _process_vm_readv()(pid, ctypes.byref(local), len(into), ctypes.byref(remote), len(into), 0)
    if count != sum(map(len, into)):
        why = os.strerror(ctypes.get_errno()) if count < 0 else f"{count} bytes were read"
        raise NotReadableError(f"the memory of process {pid} cannot be read: {why}")
