"""System calls in other namespaces, in a short-lived thread: namespaces belong to threads."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import boot

_T = TypeVar("_T")
_CLONE_FS = 0x200


def in_thread(action: Callable[[], _T]) -> _T:
    """Call ``action`` in a thread whose namespaces can change; return or raise its result."""
    results: list[_T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(action())
        except BaseException as error:  # noqa: BLE001  carried to the calling thread
            failures.append(error)

    thread = threading.Thread(target=body, name="namespace")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def in_namespace(place: Path, kind: int, action: Callable[[], _T]) -> _T:
    """
    Call ``action`` in a namespace; a socket that it creates stays there.

    Args:
        place: File of the namespace, such as /proc/PID/ns/net.
        kind: ``boot.CLONE_NEWNET``, or ``boot.CLONE_NEWNS`` for paths as they are there.
    """

    def entered() -> _T:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if kind == boot.CLONE_NEWNS:
                boot.unshare(_CLONE_FS)  # who shares root and working directory with others stays where they are
            boot.setns(descriptor, kind)
        finally:
            os.close(descriptor)
        return action()

    return in_thread(entered)
