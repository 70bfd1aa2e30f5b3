"""Things that take a moment each, done at the same time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def together(*calls: Callable[[], object]) -> None:
    """Call all, and return when all have returned. Raises: what the first of them raised."""
    if not calls:
        return
    with ThreadPoolExecutor(len(calls), "together") as pool:
        for one in [pool.submit(call) for call in calls]:
            one.result()
