"""Batching of concurrent calls."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Batcher(Generic[Item]):
    """While one batch runs, the next gathers; its first caller executes it."""

    def __init__(self, execute: Callable[[list[Item]], None]) -> None:
        self._execute = execute
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[tuple[Item, Future[None]]] = []

    def submit(self, item: Item) -> None:
        """Return when a batch with ``item`` was executed; raise the execution's error."""
        mine: Future[None] = Future()
        with self._lock:
            self._waiting.append((item, mine))
        with self._turn:
            if not mine.done():
                self._run()
        mine.result()

    def _run(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting, []
        try:
            self._execute([item for item, _ in batch])
        except BaseException as error:  # noqa: BLE001  every submitter must hear of it, and each raises it again
            for _, future in batch:
                future.set_exception(error)
            return
        for _, future in batch:
            future.set_result(None)
