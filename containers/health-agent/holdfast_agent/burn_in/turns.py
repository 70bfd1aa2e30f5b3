"""Locks that limit load tests at the same time on one machine."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

TURNS = "/opt/holdfast/turns"
"""Made by a local cloud: a folder for each kind of test, with a file for each that may run at the same time."""
JOINING, IDLE = "joining", "idle"
"""Idle tests have the lowest priority and take long: a node that joins must not wait for them."""
WITHIN_S = 300.0
POLL_S = 0.2


@contextlib.contextmanager
def turn(folder: Path, *, within_s: float = WITHIN_S) -> "Iterator[bool]":
    """
    Hold one lock file of a folder; yields True if one was free in time.

    Without that folder there is no wait. A holder that dies releases its lock; after ``within_s`` the test runs anyway.
    """
    until_s = time.monotonic() + within_s
    with contextlib.ExitStack() as held:
        files = _opened(folder, held)
        while files and not any(map(_is_taken, files)):
            if time.monotonic() >= until_s:
                yield False
                return
            time.sleep(POLL_S)
        yield True


def _opened(folder: Path, held: contextlib.ExitStack) -> "list[IO[bytes]]":
    try:
        return [held.enter_context(path.open("rb")) for path in sorted(folder.iterdir())]
    except OSError:
        return []


def _is_taken(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
