"""The newest events, bounded: reports of progress have a ring of their own, or they would push out all others."""

from collections import deque
from collections.abc import Iterable
from itertools import takewhile

from holdfast_common import Event, kinds

MOST, MOST_REPORTS = 2000, 500
REPORTS = frozenset((kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.STEP_FINISHED))
Numbered = tuple[int, Event]
"""With its place in the order of arrival, from 1."""


class RecentEvents:
    def __init__(self) -> None:
        self.total = 0
        self._others: deque[Numbered] = deque(maxlen=MOST)
        self._reports: deque[Numbered] = deque(maxlen=MOST_REPORTS)

    def add(self, event: Event) -> None:
        self.total += 1
        (self._reports if event.kind in REPORTS else self._others).append((self.total, event))

    def after(self, number: int) -> list[Numbered]:
        """Events that arrived after event ``number``, in the order of arrival."""

        def fresh(ring: Iterable[Numbered]) -> Iterable[Numbered]:
            return takewhile(lambda one: one[0] > number, ring)

        return sorted((*fresh(reversed(self._others)), *fresh(reversed(self._reports))), key=lambda one: one[0])
