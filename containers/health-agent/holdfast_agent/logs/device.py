"""
/dev/kmsg (Documentation/ABI/testing/dev-kmsg): one record per read, with a sequence number.

The device is a ring: a reader that is overtaken gets EPIPE once and continues at the oldest record. The next sequence
number tells the number of lost records.
"""

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Optional

from holdfast_agent.logs.source import Batch, Source

LONGEST_RECORD = 8192
MOST_RECORDS = 2000
"""Read in one turn."""


class DeviceLog(Source):
    def __init__(self, path: str = "/dev/kmsg") -> None:
        self._path = path
        self._descriptor = -1
        self._next: Optional[int] = None
        """Sequence of the record that comes next."""
        self._read_before: Optional[int] = None
        """Last record of an earlier agent; None when it no longer matters."""
        self._newest = -1
        self._skipped = False

    def descriptors(self) -> "tuple[int, ...]":
        return (self._descriptor,) if self._descriptor >= 0 else ()

    def position(self) -> "dict[str, Any]":
        sequence = self._read_before if self._read_before is not None else (self._next or 0) - 1
        return {"sequence": sequence}

    def go_on(self, position: "Mapping[str, Any]") -> None:
        sequence = position.get("sequence")
        self._read_before = sequence if isinstance(sequence, int) and sequence >= 0 else None

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):  # whoever served it may be gone; it is closed all the same
                os.close(descriptor)

    def read(self) -> Batch:
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as problem:
                return Batch(missing=f"{self._path}: {problem.strerror}")
            self._next, self._skipped = None, False
        lines: list[bytes] = []
        lost = 0
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self._descriptor, LONGEST_RECORD)
            except BlockingIOError:
                return self._ended(lines, lost)
            except OSError as problem:
                if problem.errno in (errno.EPIPE, errno.EINVAL):
                    if problem.errno == errno.EINVAL:
                        lost += 1  # longer than any that the kernel writes; it is skipped
                    continue
                self.close()
                return Batch(lines=tuple(lines), lost=lost, missing=f"{self._path}: {problem.strerror}")
            if not record:
                self.close()
                return Batch(lines=tuple(lines), lost=lost, missing=f"{self._path} ended: not a kernel log")
            lost += self._take(record, lines)
        return Batch(lines=tuple(lines), lost=lost, more=True)

    def _take(self, record: bytes, lines: "list[bytes]") -> int:
        """Keep a record unless an earlier agent has read it; return the number of missing ones before it."""
        fields = record.split(b",", 3)
        try:
            sequence = int(fields[1])
        except (IndexError, ValueError):
            lines.append(record.rstrip(b"\n"))
            return 0
        expected, self._next = self._next, sequence + 1
        if self._read_before is not None:
            if sequence <= self._read_before:
                self._skipped = True
                return 0
            if expected is None or self._skipped:
                expected = self._read_before + 1
            self._read_before = None
        lines.append(record.rstrip(b"\n"))
        return max(sequence - expected, 0) if expected is not None else 0

    def _ended(self, lines: "list[bytes]", lost: int) -> Batch:
        """Start again if the newest record is older than the last one read: it is another log."""
        if self._read_before is not None and self._skipped and self._next is not None:
            if self._next <= self._read_before:
                self._read_before = None
                self.close()
                return Batch(lines=tuple(lines), lost=lost, more=True)
            self._read_before = None
        return Batch(lines=tuple(lines), lost=lost)
