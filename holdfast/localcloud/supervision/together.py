from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def together(*calls: Callable[[], object]) -> None:
    """Call all concurrently, and return when all have. Raise the first error."""
    if not calls:
        return
    with ThreadPoolExecutor(len(calls), "together") as pool:
        for one in [pool.submit(call) for call in calls]:
            one.result()
