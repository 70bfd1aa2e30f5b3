"""Work of a launcher that goes on beside the rest, and what follows when it fails."""

import asyncio
import traceback
from collections.abc import Coroutine

from holdfast_runtime.launcher.generation import Ending, Journal
from holdfast_runtime.launcher.ranks import ForkError


class Tasks:
    """All that this launcher has begun; one that fails ends the job, which would else wait for what never comes."""

    def __init__(self, *, ending: Ending, journal: Journal) -> None:
        self._ending = ending
        self._journal = journal
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def cancel(self) -> list["asyncio.Task[None]"]:
        for task in self._tasks:
            task.cancel()
        return [*self._tasks]

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, ForkError | OSError):
            self._ending.give_up(str(error))
        elif error is not None:
            self._journal.say("".join(traceback.format_exception(error)).rstrip())
            self._ending.give_up(f"the launcher failed: {type(error).__name__}: {error}; see the traceback above")
