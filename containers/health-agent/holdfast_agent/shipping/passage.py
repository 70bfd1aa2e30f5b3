"""
One file's lines into one stream, a request at a time.

The stream has the first so many lines of the file, one event each. The stored position only saves a query, and covers
the seconds in which the service does not show new events yet.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from holdfast_agent.aws import AwsError
from holdfast_agent.shipping.batches import next_batch
from holdfast_agent.shipping.lines import Line, Lines
from holdfast_agent.shipping.state import Position, PositionFile
from holdfast_agent.shipping.stream import LogStream


class Passage:
    """Not thread-safe. ``wait`` sleeps and returns True to stop; ``collected`` transforms a line."""

    def __init__(
        self,
        *,
        path: Path,
        stream: LogStream,
        state: PositionFile,
        shown_after_s: float,
        wait: Callable[[float], bool],
        collected: Callable[[str], str] = str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._stream, self._state = path, stream, state
        self._shown_after_s, self._wait, self._monotonic = shown_after_s, wait, monotonic
        self._collected = collected
        self._position = state.read()
        self._lines = Lines(path=path, inode=self._position.inode, offset=self._position.offset)
        self._waiting: list[Line] = []
        self._is_sure = False

    @property
    def shipped(self) -> int:
        return self._position.lines

    @property
    def behind_bytes(self) -> int:
        return self._lines.behind_bytes

    def close(self) -> None:
        self._lines.close()

    def ship(self) -> bool:
        """Send one request; True if there may be more. Raises AwsError, and may be called again."""
        if not self._is_sure and not self._catch_up():
            return False
        self._read()
        if not self._waiting:
            return False
        batch = next_batch(self._waiting, now_ms=self._stream.now_ms())
        self._position = replace(self._position, intended=self._position.lines + len(batch.entries))
        self._keep()
        try:
            self._stream.put(batch)
        except AwsError as error:
            self._is_sure = 400 <= error.status < 500
            raise
        self._waiting = self._waiting[len(batch.entries) :]
        self._passed([entry.line for entry in batch.entries])
        self._keep()
        return True

    def _read(self) -> None:
        if not self._waiting:
            self._waiting = [replace(line, text=self._collected(line.text)) for line in self._lines.read()]

    def _passed(self, lines: "list[Line]") -> None:
        count = self._position.lines + len(lines)
        self._position = Position(inode=lines[-1].inode, offset=lines[-1].end, lines=count, intended=count)

    def _keep(self) -> None:
        """A full disk does not stop shipping: the stream's count replaces the file."""
        with contextlib.suppress(OSError):
            self._state.write(self._position)

    def _catch_up(self) -> bool:
        """Skip what the stream has, when the last request's result is unknown."""
        has = self._stream.count()
        until = self._monotonic() + self._shown_after_s
        while has < self._position.intended and self._monotonic() < until:
            if self._wait(min(1.0, self._shown_after_s)):
                return False
            has = self._stream.count()
        # Fewer than were taken for certain: the oldest have expired with the group's retention.
        self._skip(max(has, self._position.lines) - self._position.lines)
        self._position = replace(self._position, intended=self._position.lines)
        self._is_sure = True
        return True

    def _skip(self, count: int) -> None:
        while count > 0:
            self._read()
            if not self._waiting:
                return
            passed = self._waiting[:count]
            self._waiting = self._waiting[len(passed) :]
            count -= len(passed)
            self._passed(passed)
