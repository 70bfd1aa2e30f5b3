"""
Events of a job: starts, progress, recoveries, the finish.

One launcher writes them: that of the first rank that kept its state in memory, else that of rank 0.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast_common import kinds
from holdfast_runtime.launcher.generation.journal import Journal
from holdfast_runtime.launcher.links import Settled
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import View

PROGRESS_EVERY_S = 2.0
SILENT_AFTER_S = 60.0
"""A script without a first message by then is taken for a silent one; its start is reported with its time."""


@dataclass
class _Times:
    """Nanoseconds, of one recovery; 0 for what has not been."""

    troubled: int = 0
    detected: int = 0
    left: int = 0
    agreed: int = 0
    planned: bool = False
    """Whether nothing broke, from its beginning to its end."""


class Record:
    """
    One launcher's.

    Args:
        instance: Of this node; empty outside of a cluster.
        sizes: Numbers of nodes that an elastic job may have. Default: it keeps its size.
        clock: UTC nanoseconds. Default: the machine's.
    """

    def __init__(
        self,
        *,
        slots: LocalSlots,
        journal: Journal,
        instance: str,
        sizes: tuple[int, ...] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._slots = slots
        self._journal = journal
        self._instance = instance
        self._sizes = sizes
        self._clock = clock
        self._times = _Times()
        self._began = False
        """Whether the job has been seen to run."""
        self._start: tuple[int, View] | None = None
        """When scripts were started of which it is not known yet whether they say anything."""
        self._step, self._step_ns, self._loss = 0, 0, math.nan
        self._from_step = self._total = 0
        """What the committed view begins with."""
        self._reported_step, self._reported_ns = 0, 0
        self._began_ns, self._first_step, self._good_ns, self._since_ns = 0, -1, 0, 0
        """For the summary: when ranks first started, at which step the job did, and how long it has trained so far."""
        self._size = 0
        """Ranks of the last generation that came together."""
        self.rank = 0
        """The rank whose launcher speaks."""

    @property
    def speaks(self) -> bool:
        return any(slot.rank == self.rank for slot in self._slots)

    def moved(self, *, step: int, loss: float | None, of_first: bool, total: int = 0) -> None:
        if step <= max(self._step, self._from_step):
            return
        self._step, self._step_ns = step, self._clock()
        self._loss, self._total = math.nan if loss is None else loss, total
        if of_first and self._step_ns - self._reported_ns > PROGRESS_EVERY_S * 1e9:
            self._progress()

    def troubled(self, *, planned: bool) -> None:
        self._stands_still()
        if not self._times.troubled:
            now = self._clock()
            self._times = _Times(troubled=now, detected=0 if planned else now, planned=planned)
        elif not planned:
            self._times.planned = False

    def left(self) -> None:
        """No local rank is in a collective any more."""
        if self._times.troubled and not self._times.left:
            self._times.left = self._clock()

    def installed(self, view: View) -> None:
        kept = (rank for rank, source in enumerate(view.sources) if source == "memory")
        self.rank = next(kept, 0)
        self._times.agreed = self._clock()
        self._from_step = view.resume_step
        if not self._slots.in_process:
            self.say_start()
            self._start = self._times.agreed, view

    def silent(self) -> None:
        if not self._slots.in_process:
            self.say_start()

    def say_start(self) -> None:
        pending, self._start = self._start, None
        if pending is None:
            return
        time_ns, view = pending
        kind = kinds.JOB_RESUMED if self._began else kinds.JOB_STARTED
        self._begin(kind, view, nodes=self._instance, time_ns=time_ns)

    def settled(self, view: View, reports: Mapping[int, Settled]) -> None:
        if not self._slots.in_process or not any(item.port for item in view.ranks):
            return
        times, self._times = self._times, _Times()
        self._since_ns = self._clock()
        self._first_step = view.resume_step if self._first_step < 0 else self._first_step
        again = view.resume_step > 0 or (self._began and self._start is None)
        self._start = None
        if self.speaks and again and times.troubled and self._began:
            self._recovered(times, copied_ns=round(max(message.copy_s for message in reports.values()) * 1e9))
        self._resized(view, planned=times.planned)
        nodes = dict.fromkeys(reports[item.slot.node].instance for item in view.ranks)
        self._begin(kinds.JOB_RESUMED if again else kinds.JOB_STARTED, view, nodes=",".join(filter(None, nodes)))
        self._step = self._reported_step = view.resume_step

    def _resized(self, view: View, *, planned: bool) -> None:
        before, self._size = self._size, len(view.ranks)
        if self.speaks and before and before != self._size:
            detail = {
                "world_size": self._size,
                "world_size_before": before,
                "step": view.resume_step,
                "planned": planned,
            }
            self._write(kinds.JOB_RESIZED, None, detail)

    def finished(self) -> None:
        self.say_start()
        if self.speaks:
            self._progress()
            self._write(kinds.JOB_FINISHED, None, self._last())

    def summary(self) -> str:
        """Return steps, time, goodput and faults survived; empty where the job has not begun."""
        if not self._began:
            return ""
        self._stands_still()
        whole_ns, journal = max(1, self._clock() - self._began_ns), self._journal
        faults = f"{journal.recoveries} {'fault' if journal.recoveries == 1 else 'faults'} survived"
        if self._first_step < 0:  # a script that reports no steps
            return f"{_span(whole_ns)}, {faults}"
        goodput = f"goodput {100 * self.goodput:.1f} %"
        return f"{self._steps} steps in {_span(whole_ns)}, {goodput}, {faults}, {journal.steps_lost} steps done again"

    @property
    def goodput(self) -> float:
        """
        Share of the time since ``job_started`` in which ranks were together, without that of steps done again; 0 to 1.
        """
        now = self._clock()
        good_ns = self._good_ns + (now - self._since_ns if self._since_ns else 0)
        return good_ns * self._steps / max(1, self._steps + self._journal.steps_lost) / max(1, now - self._began_ns)

    @property
    def gauges(self) -> dict[str, float]:
        """Values of ``GAUGES`` that are known."""
        found = {"goodput_ratio": self.goodput} if self._steps else {}
        if self._total and self._steps:
            left, whole_s = max(0, self._total - self._step), (self._clock() - self._began_ns) / 1e9
            found |= {"steps": self._total, "remaining_seconds": left * whole_s / self._steps}
        return found

    @property
    def _steps(self) -> int:
        return max(self._step, self._from_step) - max(0, self._first_step)

    def _stands_still(self) -> None:
        if self._since_ns:
            self._good_ns += self._clock() - self._since_ns
            self._since_ns = 0

    def _begin(self, kind: str, view: View, *, nodes: str, time_ns: int | None = None) -> None:
        if not self._began:
            self._began, self._began_ns = True, time_ns or self._clock()
        if self.speaks:
            detail: dict[str, str | int | float] = {
                "world_size": len(view.ranks),
                "nodes": nodes,
                "generation": view.generation,
            }
            if self._slots.in_process:
                detail |= {"step": view.resume_step, "lost_steps": view.lost_steps}
            if self._sizes:
                detail["sizes"] = ",".join(map(str, self._sizes))
            self._write(kind, time_ns, detail)

    def _recovered(self, times: _Times, *, copied_ns: int) -> None:
        self._progress()
        before = max(self._step_ns, self._reported_ns)
        ends = [
            (kinds.RECOVERY_DETECTED, times.detected),
            (kinds.RECOVERY_ABORTED, times.left),
            (kinds.RECOVERY_AGREED, times.agreed),
            (kinds.RECOVERY_COPIED, times.agreed + copied_ns if copied_ns else 0),
            (kinds.RECOVERY_REBUILT, self._clock()),
        ]
        for kind, end in ends:
            if end:
                duration_s = max(0, end - before) / 1e9 if before else None
                self._write(kind, end, {"planned": times.planned}, duration_s=duration_s)
                before = end

    def _progress(self) -> None:
        if self._step > self._reported_step and self._step_ns:
            self._reported_step, self._reported_ns = self._step, self._step_ns
            self._write(kinds.JOB_PROGRESS, self._step_ns, self._last())

    def _last(self) -> "dict[str, str | int | float]":
        step: dict[str, str | int | float] = {"step": self._step} if self._slots.in_process else {}
        if self._total:
            step["steps"] = self._total
        return step | ({"loss": self._loss} if math.isfinite(self._loss) else {})

    def _write(
        self,
        kind: str,
        time_ns: int | None,
        detail: "Mapping[str, str | int | float]",
        *,
        duration_s: float | None = None,
    ) -> None:
        self._journal.event_at(time_ns, kind, duration_s=duration_s, detail=detail)


def _span(ns: int) -> str:
    minutes, seconds = divmod(ns / 1e9, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds:.0f} s" if minutes else f"{seconds:.1f} s"
