"""Times at which a node is missing or a job stands still."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Optional

_NEVER = 1 << 63


class Gaps:
    """Time spans, joined where they meet; an end of None is open."""

    def __init__(self, spans: "Iterable[tuple[int, Optional[int]]]") -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted((start, _NEVER if end is None else end) for start, end in spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def over_at(self, time_ns: int) -> Optional[int]:
        """First moment from then on outside of all gaps; None if there is none."""
        at = bisect_right(self._starts, time_ns) - 1
        if at < 0 or self._ends[at] <= time_ns:
            return time_ns
        return None if self._ends[at] == _NEVER else self._ends[at]
