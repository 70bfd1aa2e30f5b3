"""Turns: nodes that share one machine are tried out a few at a time, so that none fails for the load of the others."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

TURNS = "/opt/holdfast/turns"
"""A local cloud puts it there: a folder for each kind of trial, with a file for each that may run at the same time."""
JOINING, IDLE = "joining", "idle"
"""A trial in idle time gives way to everything, and for long: a node that joins waits for none of those."""
WITHIN_S = 300.0
POLL_S = 0.2


@contextlib.contextmanager
def turn(folder: Path, *, within_s: float = WITHIN_S) -> "Iterator[bool]":
    """
    Hold one of the files of a folder; yields whether one was free in time.

    A node with a machine of its own has no such folder, and no wait. A holder that dies gives its turn back; one that
    stands still keeps it, so that after ``within_s`` the trial is done without a turn.
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
    """None where there are none, or they are not this user's to read."""
    try:
        return [held.enter_context(path.open("rb")) for path in sorted(folder.iterdir())]
    except OSError:
        return []


def _is_taken(file: IO[bytes]) -> bool:
    """Whether the lock on it is ours now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
