"""Run work over a dependency graph in threads: what does not depend on each other runs at the same time."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from holdfast.localcloud.aws.cloudformation.resources import Stopped

WORKERS = 8


class Cancelled(Exception):  # noqa: N818 - not an error: another resource's failure ends this one's wait
    """Another resource has failed, so this one is given up."""


@dataclass(kw_only=True)
class Switch:
    """Ends the waits of one run: the process stops, or the run has failed."""

    stopping: threading.Event
    failed: threading.Event = field(default_factory=threading.Event)

    def pause(self, seconds: float) -> None:
        """Sleep, unless there is a reason not to go on."""
        if self.failed.is_set():
            raise Cancelled
        if self.stopping.wait(seconds):
            raise Stopped


def run(
    needs: Mapping[str, set[str]],
    work: Callable[[str, Switch], None],
    *,
    stopping: threading.Event,
    cancelled: threading.Event | None = None,
    go_on: bool = False,
) -> dict[str, BaseException]:
    """
    Call ``work`` for every node after all it needs; the errors by node.

    Args:
        go_on: Whether nodes that do not need a failed one still run; else the first failure ends the run,
            and what is in flight sees it in ``Switch.pause``.
        cancelled: Default: never; when set, nothing more is started.
    """
    switch = Switch(stopping=stopping, failed=cancelled or threading.Event())
    left = {name: set(needed) & needs.keys() for name, needed in needs.items()}
    errors: dict[str, BaseException] = {}
    flying: dict[Future[None], str] = {}
    with ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="cloudformation") as pool:
        while left or flying:
            if not switch.failed.is_set() and not stopping.is_set():
                for name in [name for name, needed in left.items() if not needed]:
                    del left[name]
                    flying[pool.submit(work, name, switch)] = name
            if not flying:
                break
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                name = flying.pop(future)
                error = future.exception()
                if error is None:
                    for needed in left.values():
                        needed.discard(name)
                    continue
                errors[name] = error
                if not go_on:
                    switch.failed.set()
    if stopping.is_set():
        raise Stopped
    return errors
