"""Tasks of a process that ends: each is broken off, also one that does not see that the first time."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 0.1
LAST_S = 5.0


async def end_tasks(tasks: Iterable["asyncio.Task[Any]"], *, within_s: float = LAST_S) -> None:
    """
    Cancel tasks until they have ended.

    Once is not enough: before Python 3.12 ``asyncio.wait_for`` does not see a cancellation that comes together with
    what it waits for (python/cpython#86296), and whoever calls it in a loop goes on.

    Args:
        within_s: Seconds after which one that still goes on is left alone. Default: 5
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + within_s
    left = {task for task in tasks if not task.done()}
    while left and loop.time() < deadline_s:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
