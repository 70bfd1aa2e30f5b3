"""Memory that a step has given back is there for the next one, and for the first one of a spare."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast_runtime.inprocess import keep_freed_memory

PROGRAM = """
import resource
import torch
from holdfast_runtime.inprocess import keep_freed_memory, use_memory_once

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.zeros(5 << 20) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

found = [faults(), faults()]
assert keep_freed_memory()
use_memory_once(4 * (5 << 20) * 4)
print(*found, faults(), faults())
"""
PAGES = 4 * (5 << 20) * 4 // 4096


def test_memory_that_was_used_once_is_not_asked_of_the_kernel_again(repository: Path) -> None:
    paths = {"PYTHONPATH": ":".join(str(repository / "containers" / part) for part in ("training", "common"))}
    said = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True, env=paths, timeout=120)
    *before, first, later = map(int, said.split())
    assert min(before) > 0.9 * PAGES, "the kernel gives larger pages than 4 KiB here"
    assert max(first, later) < PAGES / 2


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_who_has_set_the_allocator_keeps_what_was_set(name: str) -> None:
    assert not keep_freed_memory(environment={name: "1"})
