"""Open files of gloo's connections: limits, and connections that large jobs make at their first use."""

import math
import os
import resource
from collections.abc import MutableMapping, Sequence

from holdfast_runtime.groups.private import UnsupportedError
from holdfast_runtime.groups.sockets import descriptors

LAZY = "TORCH_GLOO_LAZY_INIT"
LAZY_FROM = 64
"""Ranks of a job above which connections are made at their first use. All ranks have to do the same."""
ROOM = 16
"""Files for data, logs and checkpoints, beside those that are open."""
OF_A_GROUP = 8
"""Of a group without its connections: listener, epoll, timer."""


def prepare(sizes: Sequence[int], *, environment: MutableMapping[str, str] = os.environ) -> bool:
    """
    Have files for groups with these numbers of members, the first of them all ranks.

    Returns:
        True where connections are made at their first use.

    Raises:
        UnsupportedError: the hard limit is too low.
    """
    lazy = sizes[0] > LAZY_FROM
    environment[LAZY] = str(int(lazy))
    needed = len(descriptors()) + ROOM + sum(map(_lazy if lazy else _full, sizes))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = math.inf if hard == resource.RLIM_INFINITY else hard
    if needed > most:
        raise UnsupportedError(
            f"got a hard limit of {hard:,} open files; allowed: {needed:,} or more for {len(sizes)} groups in a job of "
            f"{sizes[0]:,} ranks; raise it (LimitNOFILE of systemd, PropagateResourceLimits of Slurm)"
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(min(most, 2 * needed)), hard))
    return lazy


def _full(size: int) -> int:
    return size - 1 + OF_A_GROUP


def _lazy(size: int) -> int:
    """Neighbours in a ring and in a tree."""
    return min(size - 1, 2 + 2 * math.ceil(math.log2(max(size, 2)))) + OF_A_GROUP
