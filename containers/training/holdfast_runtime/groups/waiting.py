"""
Waits of the script's own collectives, with a way out.

gloo can miss a broken connection (``Pair::signalException`` skips waiters of a half-received message), so poll instead
of blocking; a wait that cannot end is left behind in a thread of its own.
"""

import logging
import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from holdfast_runtime.groups import private

_LOG = logging.getLogger(__name__)
LOOK_UP = timedelta(seconds=0.05)
"""Nearly always a wait ends by itself when it is time to leave, because its connections are broken."""


class Waits:
    def __init__(self, leaving: Callable[[], bool]) -> None:
        self._leaving = leaving
        self._own = threading.local()

    def watch(self) -> None:
        private.watch_waits(self.of_work, self.of_tensor)

    def of_work(self, real: Callable[..., Any], work: Any, *arguments: Any, **options: Any) -> Any:
        """In place of ``Work.wait``. Raises ConnectionError when it is time to leave."""
        if arguments or options:
            return real(work, *arguments, **options)
        if private.waits_as_a_whole(work):
            return self._aside(lambda: real(work), f"kind {work._get_op_type()}")
        while not has_ended(work, wait=real):
            if self._leaving():
                raise _left_behind(f"kind {work._get_op_type()}")
        return True

    def of_tensor(self, real: Callable[[Any], Any], tensor: Any) -> Any:
        """In place of ``wait_tensor`` of functional collectives. Raises ConnectionError when it is time to leave."""
        if type(tensor) is Tensor and not torch.compiler.is_compiling():
            self._aside(lambda: real(tensor), "functional")
        return real(tensor)

    def _aside(self, wait: Callable[[], Any], what: str) -> Any:
        helper: _Helper | None = getattr(self._own, "helper", None)
        if helper is None:
            helper = self._own.helper = _Helper()
        asked = helper.do(wait, leaving=self._leaving)
        if not asked.ended.is_set():
            self._own.helper = None
            raise _left_behind(what)
        if asked.error is not None:
            raise asked.error
        return asked.value


def has_ended(work: Any, *, wait: Callable[..., Any] | None = None) -> bool:
    """
    Return True if a collective has ended, after a while. Raises its error.

    Args:
        wait: Torch's own. Default: as it is.
    """
    wait = wait or type(work).wait
    try:
        wait(work, LOOK_UP)
    except RuntimeError:
        if not work.is_completed():
            return False
        wait(work)  # its own error, or none
    return True


def _left_behind(what: str) -> ConnectionError:
    _LOG.warning("a collective (%s) sleeps on although its connections are broken; it is left behind", what)
    return ConnectionError("it was time to leave while a collective waited")


class _Helper:
    """A thread in which another one's waits are."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[_Asked] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="holdfast-wait", daemon=True).start()

    def do(self, wait: Callable[[], Any], *, leaving: Callable[[], bool]) -> "_Asked":
        """Until it has ended, or it is time to leave; then this thread has an end of its own."""
        asked = _Asked(wait)
        self._asked.put(asked)
        while not asked.ended.wait(LOOK_UP.total_seconds()):
            if leaving():
                self._asked.put(_Asked(None))
                break
        return asked

    def _work(self) -> None:
        while True:
            asked = self._asked.get()
            if asked.wait is None:
                return
            try:
                asked.value = asked.wait()
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                asked.error = error
            asked.ended.set()
            del asked


class _Asked:
    def __init__(self, wait: Callable[[], Any] | None) -> None:
        self.wait = wait
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended = threading.Event()
