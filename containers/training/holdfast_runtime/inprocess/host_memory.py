"""
Memory of the host that a step gives back stays with the process, for the next step.

glibc gives large pieces back to the kernel and takes them again in each step, and the kernel fills each page with zeros
at its first use: a tenth of a step on CPUs, and more in the first step after a recovery (ADR 325).
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

import torch

TRIM, MAP = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of mallopt(3)."""
LARGEST_MAP_BYTES = 32 << 20
"""The largest that glibc takes."""
NEVER = -1
ASKED = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""What somebody sets who wants it otherwise."""
PIECE_BYTES = 1 << 20


def keep_freed_memory(*, environment: Mapping[str, str] = os.environ) -> bool:
    """Have this process keep the memory that it frees. False where the environment or another C library decides."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name in environment for name in ASKED):
        return False
    return bool(mallopt(MAP, LARGEST_MAP_BYTES)) and bool(mallopt(TRIM, NEVER))


def resident_bytes() -> int:
    """Memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use_memory_once(size_bytes: int) -> None:
    """Use so many bytes and free them: whoever needs memory next does not wait for the kernel's."""
    held = [torch.zeros(PIECE_BYTES, dtype=torch.uint8) for _ in range(-(-size_bytes // PIECE_BYTES))]
    del held
