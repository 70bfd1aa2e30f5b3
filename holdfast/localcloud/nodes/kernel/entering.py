"""
The threads from which programs enter nodes, without the capabilities that no such node has.

What a program may ever have is set per thread and inherited by what it starts (capabilities(7), "Capability bounding
set"). So each thread gives them up once, before any entrance: what runs behind it is the node's, and may be somebody
else's by now. Asking ``setpriv`` to do it would start one program more for each that enters.
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
    ``subprocess.Popen`` from the thread for nodes that run ``containers``, or from the one for all others.

    ``on_abandoned`` gets the process when the caller was interrupted before it could have it. ``how``: for ``Popen``.
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
