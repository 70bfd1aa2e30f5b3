"""
The one thread from which programs enter nodes, without the capabilities that no node has.

What a program may ever have is set per thread and inherited by what it starts (capabilities(7), "Capability bounding
set"). So the thread gives them up once, before any entrance: what runs behind it is the node's, and may be somebody
else's by now. Asking ``setpriv`` to do it would start one program more for each that enters.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from . import boot
from .limits import KEPT


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    on_abandoned: Callable[["subprocess.Popen[bytes]"], None],
    **how: Any,
) -> "subprocess.Popen[bytes]":
    """
    ``subprocess.Popen`` from that thread.

    ``on_abandoned`` gets the process when the caller was interrupted before it could have it. ``how``: for ``Popen``.
    """

    def popen() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(list(argv), env=dict(env), **how)

    starting = _thread().submit(popen)
    try:
        return starting.result()
    except BaseException:
        starting.add_done_callback(lambda done: None if done.exception() else on_abandoned(done.result()))
        raise


@cache
def _thread() -> ThreadPoolExecutor:
    kept = list(KEPT.values())
    return ThreadPoolExecutor(1, "entrance", initializer=lambda: boot.keep_capabilities(kept))
