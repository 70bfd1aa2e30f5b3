import errno
import hashlib
import os
import time
from pathlib import Path

from holdfast_agent.burn_in.trial import Trial

CHUNK = 4 << 20
MOST_SHARE = 0.05
"""Of the free space."""
MOST_BYTES_PER_S = 64 << 20
SCHEDSTAT = Path("/proc/thread-self/schedstat")
"""Nanoseconds on a processor, nanoseconds waiting for one, turns (Documentation/scheduler/sched-stats.rst of Linux)."""


def disk(*, seconds: float, folder: Path) -> Trial:
    """Write, sync, drop the page cache, read and compare, in a file without a name."""
    try:
        room = os.statvfs(folder)
        size = min(int(room.f_bavail * room.f_frsize * MOST_SHARE), int(seconds * MOST_BYTES_PER_S))
        if size < CHUNK:
            return Trial("disk", skipped=f"{folder}: not enough free space for the test")
        descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        if problem.errno in (errno.EROFS, errno.EIO):
            return Trial("disk", problems=(f"{folder}: {problem.strerror}",))
        return Trial("disk", skipped=f"{folder}: {problem.strerror}")
    try:
        return _tried(descriptor, count=size // CHUNK, seconds=seconds)
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            return Trial("disk", skipped=f"{folder} ran out of space during the test")
        return Trial("disk", problems=(f"{folder}: {problem.strerror}",))
    finally:
        os.close(descriptor)


def _tried(descriptor: int, *, count: int, seconds: float) -> Trial:
    until_s = time.monotonic() + seconds / 2
    began_s = _served_s()
    written = 0
    for number in range(count):
        os.write(descriptor, _content(number))
        written += 1
        if time.monotonic() > until_s:
            break
    os.fsync(descriptor)
    wrote_s = _served_s() - began_s
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    began_s = _served_s()
    wrong = sum(os.pread(descriptor, CHUNK, number * CHUNK) != _content(number) for number in range(written))
    read_s = _served_s() - began_s
    size_mib = written * CHUNK / (1 << 20)
    figures = {
        "disk_write_mib_s": round(size_mib / max(wrote_s, 1e-6), 1),
        "disk_read_mib_s": round(size_mib / max(read_s, 1e-6), 1),
    }
    problems = (f"{wrong} of {written} disk blocks differ from what was written",) if wrong else ()
    return Trial("disk", problems, figures)


def _served_s() -> float:
    """Seconds on a processor: time spent waiting for one does not count against the disk."""
    try:
        waited_ns = int(SCHEDSTAT.read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        waited_ns = 0
    return time.monotonic() - waited_ns / 1e9


def _content(number: int) -> bytes:
    return hashlib.sha256(f"disk {number}".encode()).digest() * (CHUNK // 32)
