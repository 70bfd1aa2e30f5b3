"""Reports of a job's steps as columns: a log has millions of them."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Optional


class Marks:
    """Steps by time; times never decrease."""

    def __init__(self) -> None:
        self.times_ns, self.steps = array("q"), array("d")
        self.most: Optional[float] = None
        """The largest of all."""

    def add(self, time_ns: int, step: float) -> None:
        self.times_ns.append(time_ns)
        self.steps.append(step)
        if self.most is None or step > self.most:
            self.most = step

    def latest_ns(self, time_ns: int) -> Optional[int]:
        known = bisect_right(self.times_ns, time_ns)
        return self.times_ns[known - 1] if known else None

    def most_from(self, start_ns: int, *, until_ns: Optional[int] = None) -> Optional[float]:
        end = len(self.steps) if until_ns is None else bisect_right(self.times_ns, until_ns)
        return max(self.steps[bisect_left(self.times_ns, start_ns) : end], default=None)
