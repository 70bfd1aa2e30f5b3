"""Events into a state, each once: every look at the log reads a time that was read before."""

from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.cli.console.state import LogState
from holdfast_common import Event

REMEMBERED_NS = 20 * 60 * 1_000_000_000


class Intake:
    def __init__(self) -> None:
        self.state = LogState()
        self._known: set[int] = set()
        self._in_order: deque[tuple[int, int]] = deque()
        self.newest_ns = 0

    def take(self, events: Iterable[Event]) -> None:
        """Add the events that are new."""
        self.state.add(self._fresh(events))

    def _fresh(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            key = hash((event.time_ns, event.source, event.kind, event.node, event.job, event.evidence))
            if key in self._known:
                continue
            self._known.add(key)
            self._in_order.append((event.time_ns, key))
            self.newest_ns = max(self.newest_ns, event.time_ns)
            while self._in_order[0][0] < self.newest_ns - REMEMBERED_NS:
                self._known.discard(self._in_order.popleft()[1])
            yield event
