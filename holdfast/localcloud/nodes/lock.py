"""Lock file between processes, removed by its last exclusive holder on request."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from .spec import NodeError

_RETRY_S = 0.01


@contextlib.contextmanager
def locked(path: Path, *, exclusive: bool, timeout_s: float) -> Iterator[int]:
    """Hold the lock; yield its descriptor, which a child may inherit to keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _wait(fd, exclusive=exclusive, deadline=deadline, path=path)
            if _is_current(fd, path):
                yield fd
                return
        finally:
            os.close(fd)  # closing, not unlocking: a child that inherited the descriptor keeps the lock


def _wait(fd: int, *, exclusive: bool, deadline: float, path: Path) -> None:
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:  # noqa: PERF203
            if time.monotonic() > deadline:
                raise NodeError(f"{path} is held by another process; wait for it or end it, then try again") from None
            time.sleep(_RETRY_S)
        else:
            return


def _is_current(fd: int, path: Path) -> bool:
    try:
        return os.fstat(fd).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False
