"""All load tests, one after another, within a time budget."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from holdfast_agent.burn_in.bandwidth import loopback
from holdfast_agent.burn_in.compute import compute
from holdfast_agent.burn_in.devices import gpus, links
from holdfast_agent.burn_in.disk import disk
from holdfast_agent.burn_in.memory import memory
from holdfast_agent.burn_in.peers import slower
from holdfast_agent.burn_in.trial import Trial

TRIES = 3
"""Repetitions of a slow test: a noisy neighbour is temporary, a slow node is slow each time."""
AGAIN_S = 5.0
"""Longest time of each repetition."""
_NO_PEERS: "Mapping[str, tuple[float, int]]" = MappingProxyType({})


def burn_in(
    *,
    seconds: float,
    folder: Path,
    nvml_library: str = "",
    gpus_expected: int = 0,
    fabric_root: str = "",
    others: "Mapping[str, tuple[float, int]]" = _NO_PEERS,
) -> "Iterator[Trial]":
    """
    Yield each result. A test far slower than on other nodes is repeated; its best figures count.

    Args:
        seconds: Total, without NVIDIA's diagnosis and repetitions.
        folder: On the disk under test.
        others: Median of each figure, and the number of nodes that have it.
    """
    if nvml_library:
        yield gpus(seconds=seconds, library=nvml_library, expected=gpus_expected)
    if fabric_root:
        yield links(root=fabric_root)
    until_s = time.monotonic() + seconds
    yield _best(compute, seconds=seconds * 0.4, others=others)
    yield _best(memory, seconds=seconds * 0.2, others=others)
    yield _best(partial(disk, folder=folder), seconds=seconds * 0.2, others=others)
    left_s = min(seconds * 0.2, max(until_s - time.monotonic(), 0.2))
    yield _best(loopback, seconds=left_s, others=others)


def _best(trial: "Callable[..., Trial]", *, seconds: float, others: "Mapping[str, tuple[float, int]]") -> Trial:
    found = trial(seconds=seconds)
    for _ in range(TRIES - 1):
        if found.problems or not slower(found.figures, others):
            break
        again = trial(seconds=min(seconds, AGAIN_S))
        best = {name: max(value, again.figures.get(name, value)) for name, value in found.figures.items()}
        found = replace(found, problems=again.problems, figures=best)
    return found
