"""Private files: files of others are rejected, written files have mode 0600."""

import os
import stat
from pathlib import Path

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def fault(info: os.stat_result, *, user: int) -> str:
    """Return why a file or folder is not private to its user, as the end of a sentence; or ""."""
    if info.st_uid != user:
        return f"belongs to user {info.st_uid}, and this is user {user}"
    if info.st_mode & WRITABLE_BY_OTHERS:
        return f"can be written by others (mode {stat.S_IMODE(info.st_mode):04o})"
    return ""


def private_bytes(path: Path) -> bytes:
    """Return the content. Raise PermissionError unless a regular file that only this user can write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        why = fault(info, user=os.geteuid()) if stat.S_ISREG(info.st_mode) else "is no plain file"
        if why:
            raise PermissionError(f"{path} {why}")
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600, atomically."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        error.filename = error.filename or str(path)  # the kernel names none of a write
        raise
