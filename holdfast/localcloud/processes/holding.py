"""
One command per home: a command that changes a home holds a file lock in it.

The file records the command, for messages of the next one. The kernel releases the lock of a killed command, whose
record tells what it was doing. Readers take no lock.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from holdfast.localcloud.home import LOCK, MARKER, LocalCloudError, is_fresh, make_folder, unwritable
from holdfast.localcloud.processes.detached import Process, start_ticks

RECORDED_WITHIN_S = 1.0
"""After the lock was taken."""
POLL_S = 0.05
LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Command that holds a home, ``since`` seconds since 1970. ``removing``: it removes the home."""

    pid: int
    start_ticks: int
    verb: str
    since: float
    removing: bool = False

    def __str__(self) -> str:
        return f"holdfast {self.verb} (pid {self.pid})"

    @property
    def process(self) -> Process:
        return Process(pid=self.pid, start_ticks=self.start_ticks)


class HeldError(LocalCloudError):
    """Another command holds the home; ``holder`` is None before it has recorded itself."""

    def __init__(self, home: Path, holder: Holder | None) -> None:
        self.holder = holder
        if holder is None:
            super().__init__(f"another holdfast command is using {home}; wait until it exits")
            return
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
        way_out = "" if holder.verb == "down" else ", or end it with: holdfast down"
        super().__init__(f"{holder} is using {home} since {since}; wait until it exits{way_out}")


@dataclass(frozen=True, kw_only=True)
class HomeHold:
    """A held home. ``fresh``: no home before. ``unfinished``: an earlier removal was killed."""

    fresh: bool
    unfinished: bool


def holder_of(home: Path) -> Holder | None:
    found = _last(home)
    return found if found is not None and found.process.alive() else None


def is_going(home: Path) -> bool:
    """Return True if a command removes the home, or was killed while it did."""
    found = _last(home)
    return found is not None and found.removing


@contextlib.contextmanager
def hold(home: Path, *, verb: str) -> Iterator[HomeHold]:
    """
    Hold a home for one command. The folder is created if missing, and removed if it is no home at the end.

    Raises:
        HeldError: Another command holds it.
        HomeError: The folder is something else, can be changed by others, or cannot be written.
    """
    descriptor = _lock(home)
    try:
        before = _parsed(os.pread(descriptor, LENGTH, 0))
        fresh = is_fresh(home)
        unfinished = before is not None and before.removing and not fresh
        own = start_ticks(os.getpid()) or 0
        _write(descriptor, Holder(pid=os.getpid(), start_ticks=own, verb=verb, since=time.time(), removing=unfinished))
        yield HomeHold(fresh=fresh, unfinished=unfinished)
    finally:
        after = _parsed(os.pread(descriptor, LENGTH, 0))
        _write(descriptor, after if after is not None and after.removing else None)
        if not (home / MARKER).exists():
            (home / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody else put something into it
                home.rmdir()
        os.close(descriptor)


@contextlib.contextmanager
def removing(home: Path) -> Iterator[None]:
    """Remove the held home; the next command finishes an interrupted removal."""
    holder = holder_of(home)
    if holder is None or holder.pid != os.getpid():
        yield
        return
    with (home / LOCK).open("r+b", buffering=0) as file:
        _write(file.fileno(), replace(holder, removing=True))
        yield
        _write(file.fileno(), holder if not holder.removing else replace(holder, removing=False))


def _lock(home: Path) -> int:
    while True:
        try:
            make_folder(home)
            descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # the command that had the home has removed it meanwhile
            continue
        except OSError as error:
            raise unwritable(home, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_in_place(descriptor, home / LOCK):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise HeldError(home, _recorded(home)) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_in_place(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _recorded(home: Path) -> Holder | None:
    until = time.monotonic() + RECORDED_WITHIN_S
    while (found := holder_of(home)) is None and time.monotonic() < until:
        time.sleep(POLL_S)
    return found


def _write(descriptor: int, holder: Holder | None) -> None:
    """Write in place with fixed length: possible on a full disk, once the file exists."""
    text = json.dumps(asdict(holder)) if holder is not None else ""
    try:
        os.pwrite(descriptor, text.ljust(LENGTH).encode(), 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _last(home: Path) -> Holder | None:
    try:
        return _parsed((home / LOCK).read_bytes()[:LENGTH])
    except OSError:
        return None


def _parsed(content: bytes) -> Holder | None:
    try:
        return Holder(**json.loads(content))
    except (ValueError, TypeError):
        return None
