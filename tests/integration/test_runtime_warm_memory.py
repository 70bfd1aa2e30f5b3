"""Memory that a step has given back is there for the next one, and for the first one of a spare."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast_runtime.launcher.ranks import allocating

PROGRAM = """
import resource
import torch
from holdfast_runtime.inprocess import use_memory_once

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.zeros(5 << 20) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

use_memory_once(4 * (5 << 20) * 4)
print(faults(), faults())
"""
PAGES = 4 * (5 << 20) * 4 // 4096


def faults(repository: Path, environment: Mapping[str, str]) -> list[int]:
    """Page faults of a program that takes the same memory twice."""
    path = ":".join(str(repository / "containers" / part) for part in ("training", "common"))
    command = [sys.executable, "-c", PROGRAM]
    said = subprocess.check_output(command, text=True, env={**environment, "PYTHONPATH": path}, timeout=120)
    return [int(count) for count in said.split()]


def test_memory_that_was_used_once_is_not_asked_of_the_kernel_again(repository: Path, tmp_path: Path) -> None:
    assert min(faults(repository, {})) > 0.9 * PAGES, "the kernel gives larger pages than 4 KiB here"
    assert max(faults(repository, allocating({}, devices=tmp_path))) < PAGES / 20
