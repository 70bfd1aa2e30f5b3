"""
Where a node keeps decoded data in memory: its launcher owns the folder, its ranks fill it (``holdfast_runtime.data``).

Who makes a cache also removes it. A launcher that is killed cannot, so the next one on the node does: a folder that
nobody has locked belongs to nobody.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

ROOT = Path("/dev/shm")  # noqa: S108 - shared memory is the point
PREFIX = "holdfast-cache-"
VARIABLE = "HOLDFAST_CACHE"
"""Names the cache that this process's launcher owns."""


def cache_folder(job: str, *, root: Path = ROOT) -> Path:
    """Where the cache of a job is on every node. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", job):
        raise ValueError(f"a job's name is 1 to 100 of A-Z a-z 0-9 . _ -, and starts with none of . _ -; got {job!r}")
    return root / f"{PREFIX}{job}"


def use_folder(folder: Path) -> BinaryIO:
    """
    Make a cache folder if there is none, and hold it until the file that is given back is closed.

    Raises OSError when it cannot be made, is another user's, or is removed again and again.
    """
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            folder.mkdir(mode=0o700, exist_ok=True)
            _check_ours(folder)
            file = open_unbuffered(folder / "used")
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.fstat(file.fileno()).st_nlink:
                return file
            file.close()
    raise OSError(f"{folder} is removed again and again; give the jobs of this node different names")


def _check_ours(folder: Path) -> None:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise PermissionError(f"{folder} must be a folder of this user that nobody else can write to; remove it")


def open_unbuffered(path: Path) -> BinaryIO:
    """For reading and writing at any place, made when it is not there."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


@contextmanager
def own_cache(job: str, *, root: Path = ROOT) -> Iterator[Path]:
    """
    Keep a job's cache through the deaths of its ranks, and remove it at the end.

    Caches of owners that were killed are removed first. The folder is made even if no rank ever uses it.
    """
    remove_abandoned(root=root)
    folder = cache_folder(job, root=root)
    used = use_folder(folder)
    try:
        yield folder
    finally:
        used.close()
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(*, root: Path = ROOT) -> list[Path]:
    """Remove the caches on this node that no living process uses; which they were."""
    removed = []
    for folder in sorted(root.glob(f"{PREFIX}*")):
        with contextlib.suppress(FileNotFoundError, PermissionError), (folder / "used").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder)
            removed.append(folder)
    return removed
