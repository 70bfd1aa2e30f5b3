"""
Whole lines of a growing file, from a position on, in bounded memory.

A line counts when it has its end and is not blank; one that is too long is cut and counts once. A renamed file is read
to its end before the new one; a file that became shorter is read from the start.
"""

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Optional

MOST_LINE_BYTES = 200_000
"""The rest of a longer line is not shipped."""
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Line:
    text: str
    inode: int
    end: int


class Lines:
    """Reads from ``offset`` of the file with this inode (0: any); the path may not exist yet."""

    def __init__(self, *, path: Path, inode: int = 0, offset: int = 0) -> None:
        self._path, self._inode, self._offset = path, inode, offset
        self._file: Optional[BinaryIO] = None
        self._held = b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def read(self) -> "list[Line]":
        """New lines, at most about 256 KiB; empty: none now."""
        file = self._opened()
        if file is None:
            return []
        try:
            size = os.fstat(file.fileno()).st_size
            if size < self._offset:
                self._rewind()
            while data := file.read(_CHUNK_BYTES):
                if found := self._split(data):
                    return found  # and none is the end of it only where no data is: a line may be longer than this
        except OSError:
            self.close()
            return []
        if not self._is_replaced():
            return []
        rest = self._last()
        self.close()
        self._inode = self._offset = 0
        return rest or self.read()

    @property
    def behind_bytes(self) -> int:
        try:
            return max(0, self._path.stat().st_size - self._offset) if self._file is not None else 0
        except OSError:
            return 0

    def _opened(self) -> Optional[BinaryIO]:
        if self._file is None:
            path = self._path if self._inode == 0 else self._with_inode()
            try:
                self._file = _regular(path)
                inode = os.fstat(self._file.fileno()).st_ino
                if inode != self._inode:
                    self._offset = 0 if self._inode else self._offset
                    self._inode = inode
                self._file.seek(self._offset)
            except OSError:
                self.close()
                return None
            self._held = b""
        return self._file

    def _with_inode(self) -> Path:
        """Open the file under its name, or under its new one after a rename."""
        renamed = self._path.with_name(f"{self._path.name}.1")
        with contextlib.suppress(OSError):
            if renamed.stat().st_ino == self._inode:
                return renamed
        return self._path

    def _is_replaced(self) -> bool:
        try:
            return self._path.stat().st_ino != self._inode
        except OSError:
            return False

    def _last(self) -> "list[Line]":
        """The last line of a renamed file needs no end."""
        text, self._held = self._held.decode("utf-8", "replace"), b""
        return [Line(text=text, inode=self._inode, end=self._offset)] if text.strip() else []

    def _rewind(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._offset, self._held = 0, b""

    def _split(self, data: bytes) -> "list[Line]":
        found = []
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._hold(part)
            self._offset += len(part) + 1
            text = self._held.decode("utf-8", "replace")
            self._held = b""
            if text.strip():
                found.append(Line(text=text, inode=self._inode, end=self._offset))
        self._hold(rest)
        self._offset += len(rest)
        return found

    def _hold(self, part: bytes) -> None:
        self._held = (self._held + part)[:MOST_LINE_BYTES]


def _regular(path: Path) -> BinaryIO:
    """Refuse links and pipes that others may put there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb", buffering=0)
