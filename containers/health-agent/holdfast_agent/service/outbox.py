"""
Events on their way into the log: kept in the state file until they are written, and written once.

The state is saved before an event is written, and has the log's end at that time. After a kill in between, the next
agent finds in the log which of its events were written.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.signals import Happening
from holdfast_common import EventError, EventLog

MOST_PENDING = 1000
"""Events queued while the disk is full; older ones are dropped, and counted."""

_SAME_NS = 1_000_000


class Outbox:
    def __init__(
        self, *, path: Optional[Path], cluster: str, node: str, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._path = path
        self._clock = clock
        self._now_ns = 0
        self._log = EventLog(path=path, source="agent", cluster=cluster, node=node, clock=lambda: self._now_ns)
        self._pending: list[dict[str, Any]] = []
        self._last_ns = 0
        self._torn = True
        """The log may end in a line without an end: ours, or that of a writer that died."""
        self.written = 0
        self.lost = 0
        self.problem = ""

    @property
    def pending(self) -> int:
        return len(self._pending)

    def add(self, happenings: "Sequence[Happening]") -> None:
        for happening in happenings:
            now_ns = self._clock()
            # By its time an event is known again, so no two have the same; a clock that was set back is another matter.
            self._last_ns = self._last_ns + 1 if 0 <= self._last_ns - now_ns < _SAME_NS else now_ns
            fields = {**vars(happening), "detail": dict(happening.detail), "time_ns": self._last_ns}
            self._pending.append(fields)
        too_many = len(self._pending) - MOST_PENDING
        if too_many > 0:
            del self._pending[:too_many]
            self.lost += too_many

    def remember(self) -> "dict[str, Any]":
        """State, saved before anything is written."""
        return {"pending": self._pending, "end": self._end(), "lost": self.lost}

    def restore(self, memory: "dict[str, Any]") -> None:
        """Take over events of an earlier agent that are not in the log."""
        self.lost = int(memory.get("lost", 0))
        pending = list(memory.get("pending", []))
        known = self._written_after(int(memory.get("end", 0))) if pending else set()
        self._pending = [fields for fields in pending if (fields["time_ns"], fields["kind"]) not in known]

    def flush(self) -> bool:
        """Write pending events; return True if all are written."""
        while self._pending:
            fields = dict(self._pending[0])
            self._now_ns = fields.pop("time_ns")
            try:
                self._mend()
                self._log.write(**fields)
            except OSError as problem:
                self._torn = True
                if not self.problem:
                    print(f"cannot write events to {self._path}: {problem}; queued", file=sys.stderr, flush=True)
                self.problem = str(problem)
                return False
            except EventError as problem:  # a mistake of ours must not hold up the others
                print(f"event dropped: it violates the schema: {problem}", file=sys.stderr, flush=True)
                self.lost += 1
                self._pending.pop(0)
                continue
            self._pending.pop(0)
            self.written += 1
        if self.problem:
            print(f"writing events to {self._path} again; {self.lost} were dropped", file=sys.stderr, flush=True)
        self.problem = ""
        return True

    def _mend(self) -> None:
        """End a torn line, so that ours is not lost with it."""
        if not self._torn or self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            self._torn = False
            return
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")
        finally:
            os.close(descriptor)
        self._torn = False

    def _end(self) -> int:
        try:
            return self._path.stat().st_size if self._path is not None else 0
        except OSError:
            return 0

    def _written_after(self, offset: int) -> "set[tuple[Any, Any]]":
        if self._path is None:
            return set()
        if offset <= self._end():
            lines = _lines(self._path, offset)
        else:  # it was rotated since
            lines = [*_lines(self._path.with_name(f"{self._path.name}.1"), offset), *_lines(self._path, 0)]
        found = set()
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("source") == "agent":
                found.add((event.get("time_ns"), event.get("kind")))
        return found


def _lines(path: Path, offset: int) -> "list[bytes]":
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read().splitlines()
    except OSError:
        return []
