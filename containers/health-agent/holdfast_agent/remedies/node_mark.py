"""Mark of this node: a thread that writes its report, and reads the order for it."""

import threading
from typing import Optional

from holdfast_agent.remedies.seams import NodeMarks
from holdfast_common.decisions import NodeState, Report

EVERY_S = 0.5


class NodeMark:
    """Keeps the mark at its target; polls only while there is a report, or one has to be removed."""

    def __init__(self, *, marks: NodeMarks) -> None:
        self._marks = marks
        self._target: Optional[Report] = None
        self._changed, self._ending = threading.Event(), threading.Event()
        self._thread: Optional[threading.Thread] = None
        self.seen: Optional[NodeState] = None
        """State of the node at the last look."""
        self.problem = ""

    def publish(self, report: Optional[Report]) -> None:
        """Never waits. The first call also removes a report of an earlier boot."""
        if self._thread is None:
            self._target = report
            self._thread = threading.Thread(target=self._run, name="mark", daemon=True)
            self._thread.start()
        elif report != self._target:
            self._target = report
            self._changed.set()

    def close(self) -> None:
        self._ending.set()
        self._changed.set()

    def look(self) -> bool:
        """Write and read once; return True if nothing is left to do."""
        target = self._target
        try:
            seen = self._marks.own()
            if seen.report != target:
                self._marks.report(target)
            self.problem = ""
        except Exception as error:  # noqa: BLE001 - whatever it is, it is retried
            self.problem = f"{type(error).__name__}: {error}"
            return False
        self.seen = seen
        return target is None

    def _run(self) -> None:
        while not self._ending.is_set():
            self._changed.clear()
            is_done = self.look() and self._target is None
            self._changed.wait(None if is_done else EVERY_S)
