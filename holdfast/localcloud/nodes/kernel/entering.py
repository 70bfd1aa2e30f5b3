"""
Threads that enter nodes without the capabilities that nodes lack.

The bounding set is per thread and inherited (capabilities(7), "Capability bounding set"): each thread drops it once,
which saves a ``setpriv`` per program.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from . import boot
from .limits import FOR_CONTAINERS, KEPT


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    containers: bool,
    on_abandoned: Callable[["subprocess.Popen[bytes]"], None],
    **how: Any,
) -> "subprocess.Popen[bytes]":
    """
    Run ``subprocess.Popen`` in the thread for nodes with ``containers``, or in the other one.

    ``on_abandoned`` gets the process if the caller was interrupted. ``how``: arguments of ``Popen``.
    """

    def popen() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(list(argv), env=dict(env), **how)

    starting = _thread(containers=containers).submit(popen)
    try:
        return starting.result()
    except BaseException:
        starting.add_done_callback(lambda done: None if done.exception() else on_abandoned(done.result()))
        raise


@cache
def _thread(*, containers: bool) -> ThreadPoolExecutor:
    kept = [*KEPT.values(), *(FOR_CONTAINERS.values() if containers else ())]
    return ThreadPoolExecutor(1, "entrance", initializer=lambda: boot.keep_capabilities(kept))
