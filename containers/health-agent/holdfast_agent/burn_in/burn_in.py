"""All trials, one after another, in the time there is."""

import time
from collections.abc import Iterator
from pathlib import Path

from holdfast_agent.burn_in.bandwidth import loopback
from holdfast_agent.burn_in.compute import compute
from holdfast_agent.burn_in.devices import gpus, links
from holdfast_agent.burn_in.disk import disk
from holdfast_agent.burn_in.memory import memory
from holdfast_agent.burn_in.trial import Trial


def burn_in(
    *, seconds: float, folder: Path, nvml_library: str = "", gpus_expected: int = 0, fabric_root: str = ""
) -> "Iterator[Trial]":
    """
    Each trial as it is done.

    Args:
        seconds: For all of them together, but for NVIDIA's diagnosis.
        folder: On the disk that is tried.
    """
    if nvml_library:
        yield gpus(seconds=seconds, library=nvml_library, expected=gpus_expected)
    if fabric_root:
        yield links(root=fabric_root)
    until_s = time.monotonic() + seconds
    yield compute(seconds=seconds * 0.4)
    yield memory(seconds=seconds * 0.2)
    yield disk(seconds=seconds * 0.2, folder=folder)
    yield loopback(seconds=min(seconds * 0.2, max(until_s - time.monotonic(), 0.2)))
