"""
Making of a gloo group, with a way out.

A rank that waits for a peer to connect waits until the timeout even if the peer is lost. So the group is made in a
thread of its own, which is left behind when it is time to leave.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from holdfast_runtime.groups.private import gloo_made_by

LOOK_S = 0.01
COMES_OUT_S = 0.2
"""Nearly always it comes out by itself when it is time to leave, because its store and its connections end."""


class _InThread:
    def __init__(self, real: Any, leaving: Callable[[], bool]) -> None:
        self._real = real
        self._leaving = leaving

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._real)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        found: list[Any] = []
        errors: list[BaseException] = []
        ended, left = threading.Event(), threading.Event()

        def make() -> None:
            try:
                made = self._real(*arguments, **options)
                if not left.is_set():
                    found.append(made)
            except BaseException as error:  # noqa: BLE001 - raised below, where it is waited for
                errors.append(error)
            ended.set()

        threading.Thread(target=make, name="holdfast-connect", daemon=True).start()
        until_s = 0.0
        while not ended.wait(LOOK_S):
            if self._leaving():
                until_s = until_s or time.monotonic() + COMES_OUT_S
                if time.monotonic() > until_s:
                    left.set()
                    raise ConnectionError("it was time to leave while ranks connected")
        if errors:
            raise errors[0]
        return found[0]


@contextlib.contextmanager
def can_leave(leaving: Callable[[], bool]) -> Iterator[None]:
    with gloo_made_by(lambda real: _InThread(real, leaving)):
        yield
