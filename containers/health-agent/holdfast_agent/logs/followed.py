"""File that others append to: followed through rotation, truncation and replacement."""

import os
from collections.abc import Mapping
from typing import Any, Optional

from holdfast_agent.logs.source import Batch, Source

CHUNK = 1 << 18
LONGEST_LINE = 1 << 16
"""A line without an end is cut here, so that memory stays bounded."""
_MARK = 64
"""Bytes of the file's beginning that identify it: inode numbers are reused."""


class FollowedFile(Source):
    """Reads an unknown file from its beginning if ``from_start``."""

    def __init__(self, path: str, *, from_start: bool = True) -> None:
        self._path = path
        self._from_start = from_start
        self._descriptor = -1
        self._inode = 0
        self._offset = 0
        """End of the whole lines returned so far."""
        self._rest = b""
        self._mark = b""
        self._before: Optional[Mapping[str, Any]] = None

    def position(self) -> "dict[str, Any]":
        return {"inode": self._inode, "offset": self._offset, "mark": self._mark.hex()}

    def go_on(self, position: "Mapping[str, Any]") -> None:
        self._before = position

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._rest = -1, b""

    def read(self) -> Batch:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - of a number of looks a second
        except OSError as problem:
            return self._remains(f"{self._path}: {problem.strerror}")
        if self._descriptor < 0:
            missing = self._open()
            if missing:
                return Batch(missing=missing)
        elif found.st_ino != self._inode:
            batch = self._lines()
            if batch.lines or batch.more:
                return Batch(lines=batch.lines, more=True)  # first the rest of the old one
            self._from_start = True
            self.close()
            missing = self._open()
            if missing:
                return Batch(missing=missing)
        if os.fstat(self._descriptor).st_size < self._offset + len(self._rest) or self._rewritten():
            self._offset, self._rest, self._mark = 0, b"", os.pread(self._descriptor, _MARK, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        return self._lines()

    def _open(self) -> str:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as problem:
            return f"{self._path}: {problem.strerror}"
        found = os.fstat(self._descriptor)
        self._inode, self._rest, self._offset = found.st_ino, b"", 0
        self._mark = os.pread(self._descriptor, _MARK, 0)
        if self._before is not None:
            self._find_place(self._before, found.st_size)
            self._before = None
        elif not self._from_start:
            self._offset = found.st_size
        os.lseek(self._descriptor, self._offset, os.SEEK_SET)
        return ""

    def _find_place(self, before: "Mapping[str, Any]", size: int) -> None:
        mark, offset = bytes.fromhex(str(before.get("mark", ""))), int(before.get("offset", 0))
        if before.get("inode") == self._inode and offset <= size and self._mark.startswith(mark[:_MARK]):
            self._offset = offset

    def _rewritten(self) -> bool:
        """True if its beginning changed: truncated and rewritten since the last read."""
        beginning = os.pread(self._descriptor, _MARK, 0)
        if beginning.startswith(self._mark):
            self._mark = beginning
            return False
        return True

    def _remains(self, missing: str) -> Batch:
        if self._descriptor < 0:
            return Batch(missing=missing)
        batch = self._lines()
        if not batch.lines:
            self._from_start = True
            self.close()
        return Batch(lines=batch.lines, missing=missing)

    def _lines(self) -> Batch:
        data = os.read(self._descriptor, CHUNK)
        if not data:
            return Batch()
        whole = self._rest + data
        end = whole.rfind(b"\n") + 1
        if not end and len(whole) < LONGEST_LINE:
            self._rest = whole
            return Batch(more=len(data) == CHUNK)
        end = end or len(whole)
        self._rest = whole[end:]
        self._offset += end
        return Batch(lines=tuple(whole[:end].splitlines()), more=len(data) == CHUNK)
