"""
Memory of the host, used before it is needed.

The kernel fills each page with zeros at its first use, for which all others wait: a tenth of a step on CPUs. What a
process frees stays with it (ADR 325), so it pays once.
"""

import os
from pathlib import Path

import torch

PIECE_BYTES = 1 << 20


def resident_bytes() -> int:
    """Memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def use_memory_once(size_bytes: int) -> None:
    """Use so many bytes and free them: whoever needs memory next does not wait for the kernel's."""
    held = [torch.zeros(PIECE_BYTES, dtype=torch.uint8) for _ in range(-(-size_bytes // PIECE_BYTES))]
    del held
